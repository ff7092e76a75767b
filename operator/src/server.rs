//! Edge (writes). Runs one reconcile pass over one server: observe, check, plan, apply, report. Each stage has a submodule of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crds::{PaperMCServer, PaperMCServerStatus, Plugin};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::runtime::controller::Action;
use resolver::lock::Lock;
use scheduler::maintenance::Gate;
use scheduler::rollout::{DECISION_COUNTS, Step, WaitingOn};
use tracing::{Instrument as _, info, info_span, warn};

use crate::caches::Rendered;
use crate::clock::{Stopwatch, now};
use crate::context::Context;
use crate::error_chain::ErrorChain;
use crate::priority::PendingPass;
use crate::requeue::{Outcome, RetryBlame, again};
use crate::telemetry::metrics::{FetchLabels, PassLabels, StepLabels};

pub(crate) mod act;
pub(crate) mod apply;
pub(crate) mod approval;
pub(crate) mod artifacts;
pub(crate) mod backups;
pub(crate) mod changes;
pub(crate) mod check;
pub(crate) mod crash_loop;
pub(crate) mod drain;
mod error;
mod finish_rollout;
pub(crate) mod follows;
pub(crate) mod image_pull;
pub(crate) mod in_game_stop;
pub(crate) mod next_window;
pub(crate) mod observe;
pub(crate) mod online_backup;
pub(crate) mod opportunistic;
pub(crate) mod partial;
mod peers;
pub(crate) mod pinned_catalog;
pub(crate) mod pinned_set;
pub(crate) mod plan;
pub(crate) mod records;
pub(crate) mod render;
pub(crate) mod report;
pub(crate) mod requested_restore;
mod requeue;
mod resolve;
pub(crate) mod scheduled_restart;
mod seed_claim;
mod staging;
mod unmanaged_jars;
mod update_slot;
pub(crate) mod verify;
mod wake_at;
mod window_barrier;

use act::{StepExecutor, StepOutcome};
use approval::ApprovalState;
use crash_loop::stopped::{as_it_stands, starts_again};
use drain::Drain;
pub(crate) use error::PassError;
use online_backup::{OnlineBackups, request};
use partial::PartialSelection;
use partial::urgent::UrgentUpdate;
use pinned_catalog::PinnedInputs;
use pinned_set::PinnedSet;
use plan::{Plan, WhatRuns};
use report::{PassReport, PlanningError, status_before};
use requested_restore::RestoreRequests;
use resolve::ResolveInput;
use wake_at::set_alarm;

/// Maximum age of an observation on which a step is decided. It is longer than the timeout for an agent that accepts a connection and never
/// answers. Otherwise every observation of such a server would be too old, and the pass would repeat for ever.
const LOOK_COUNTS: SignedDuration = SignedDuration::from_secs(20);

/// Status message for a server whose EULA is not accepted.
const NO_EULA: &str =
    "Minecraft's EULA is not accepted: read https://aka.ms/MinecraftEULA and set `spec.eula: Accepted`";

/// Entry point for kube's runtime: runs one pass and returns when to requeue.
pub(crate) async fn reconcile(
    server: Arc<PaperMCServer>,
    ctx: Arc<Context>,
) -> Result<Action, std::convert::Infallible> {
    Ok(again(look(server, ctx).await, now()))
}

/// Runs one pass and records its outcome in metrics and status.
pub(crate) async fn look(server: Arc<PaperMCServer>, ctx: Arc<Context>) -> Outcome {
    let namespace = server.namespace().unwrap_or_default();
    let name = server.name_any();
    let span = info_span!("server", ns = namespace, name, generation = server.metadata.generation);
    let key = (namespace.clone(), name.clone());
    let started = std::time::Instant::now();
    let outcome = async {
        if server.metadata.deletion_timestamp.is_some() {
            // The garbage collector deletes the children with their owner. The operator has no finalizer, so there is nothing to wait for.
            forget(&ctx, &namespace, &name, server.uid().as_deref());
            return Outcome::Waiting { until: None };
        }
        // Boxed because the future of a pass is large, and a thousand of them may wait at once.
        match Box::pin(pass(&server, &ctx, &ctx.rush.enter())).await {
            Ok(outcome) => {
                ctx.memory.attempts.remove(&key);
                outcome
            }
            Err(PassError::Act { step, source }) if source.is_of_an_old_look() => {
                info!(step, why = %ErrorChain(&source), "what was seen is old by now: it is looked at again");
                Outcome::Acted
            }
            Err(error) if error.is_of_a_deposed() => {
                warn!(error = %ErrorChain(&error), "this process does not lead any more");
                Outcome::Waiting { until: None }
            }
            Err(error) => {
                if error.is_about_the_end() {
                    // The namespace is being deleted, and the server with it.
                    return Outcome::Waiting { until: None };
                }
                ctx.catalog.requests.note_silent(&namespace, &name);
                let attempt = ctx.memory.attempts.get(&key).unwrap_or(0);
                ctx.memory.attempts.put(key.clone(), attempt.saturating_add(1));
                update_slot::failed(&ctx, &key, attempt);
                let blame = error.blame();
                if let PassError::Files(artifacts::FilesError::Fetch { file: _, source }) = &error {
                    ctx.metrics.fetch_failures.get_or_create(&FetchLabels { category: source.category() }).inc();
                }
                let why = ErrorChain(&error).to_string();
                warn!(attempt, ?blame, error = why, "the pass failed");
                report::report_failure(&ctx, &server, &why, now()).await;
                Outcome::Failed { blame, attempt }
            }
        }
    }
    .instrument(span)
    .await;
    if server.metadata.deletion_timestamp.is_none() {
        request::count(&ctx, &key, &server);
        report::tell(&ctx, &server);
    }
    peers::end_of_pass(&ctx, &namespace);
    ctx.metrics.reconcile_total.get_or_create(&PassLabels { controller: "server", outcome: outcome.name() }).inc();
    ctx.metrics.reconcile_seconds.observe(started.elapsed().as_secs_f64());
    let held = ctx.store.counts();
    ctx.metrics.store_downloads.inner().store(held.downloads, Ordering::Relaxed);
    ctx.metrics.store_hits.inner().store(held.hits, Ordering::Relaxed);
    outcome
}

/// Drops all cached state of a deleted server. Usually the object is already deleted, and the deletion of its children triggers this call.
pub(crate) fn forget(ctx: &Context, namespace: &str, name: &str, uid: Option<&str>) {
    ctx.memory.forget(namespace, name);
    ctx.solver.forget(&format!("{namespace}/{name}"));
    let key = (namespace.to_owned(), name.to_owned());
    ctx.messenger.forget(&key);
    peers::gone(ctx, namespace, name);
    update_slot::leave(ctx, &key);
    follows::followed_server::tell_followers(ctx, namespace, name);
    if let Some(uid) = uid {
        ctx.events.forget(uid);
    }
}

async fn pass(server: &PaperMCServer, ctx: &Context, ahead: &PendingPass<'_>) -> Result<Outcome, PassError> {
    let looked = Stopwatch::start();
    let at = looked.started_at();
    let seen = observe::observe(server, ctx, at).await?;
    let has_to_end = finish_rollout::has_to_end(&seen, &status_before(ctx, server));
    let keeps_its_turn = update_slot::is_needed(&seen, at);
    let ended = match Box::pin(go_all_the_way(server, ctx, seen, ahead, looked)).await {
        // An error that the next attempt may clear does not end a countdown.
        Err(error) if error.is_before_the_step() && (has_to_end || error.blame() == RetryBlame::User) => {
            Box::pin(finish_rollout::see_through_after(ctx, server, error, ahead)).await
        }
        ended => ended,
    };
    if !keeps_its_turn && ended.as_ref().is_err_and(PassError::is_before_the_step) {
        update_slot::give_up(ctx, server);
    }
    ended
}

/// Runs the pass from the observation to the next step, or to the reason why no plan is possible.
async fn go_all_the_way(
    server: &PaperMCServer,
    ctx: &Context,
    seen: observe::Observed,
    ahead: &PendingPass<'_>,
    looked: Stopwatch,
) -> Result<Outcome, PassError> {
    let in_trouble = |what| Box::pin(trouble(ctx, server, &seen, what, ahead, looked));
    let (checked, drain) = match read(server, ctx, &seen).await? {
        Ok(read) => read,
        Err(trouble) => return unread(ctx, server, in_trouble(trouble)).await,
    };
    if let Some(until) = plan::too_young(server, &seen, looked.started_at()) {
        return Ok(Outcome::Under { until: Some(until) });
    }
    // The spec has changed meanwhile, or the clock was set back, so the server is observed again.
    let Some(start) = window_barrier::stand(ctx, server, &checked, &seen, looked).await else {
        return Ok(Outcome::Acted);
    };
    let at = start.decided.started_at();
    let plugins = plugins_beside(ctx, server);
    let runs = WhatRuns::of(&seen);
    let before = status_before(ctx, server);
    let by_hand = plan::requested_by_hand(server, before.last_handled.as_ref(), &checked.windows, at);
    let whole_by_hand = by_hand.is_some() && partial::asked(server).is_none();
    let from = PinnedInputs::take(ctx, &checked, &seen, at);
    let read = (&ctx.facts, from.catalog());
    let request = match plan::request(server, &plugins, &runs, &ctx.config, read, whole_by_hand) {
        Ok(request) => request,
        Err(words) => return unread(ctx, server, in_trouble(PlanningError::Spec(words))).await,
    };
    let together = peers::join(ctx, &checked.namespace, &checked.name, &request);
    let restores = RestoreRequests::of(server, &checked, &seen, &before, at);
    let goes_on = finish_rollout::goes_on(&seen, restores.is_open());
    if from.snapshot.is_none() && !goes_on {
        return in_trouble(PlanningError::NoCatalog).await;
    }
    if !goes_on && peers::has_to_wait(ctx, &checked.namespace, &checked.name, &request) {
        // All servers are observed right after the operator starts. A server that was solved without its peers might get versions that they
        // cannot use.
        return Ok(Outcome::Under { until: None });
    }
    let settled = seen.settled_lock.as_ref().map(|record| record.files.lock.as_str());
    let undo = PinnedSet::of(server, &before, settled, at);
    if note_requests(ctx, server, &checked, (&seen, &before), undo.as_ref(), &restores, at).await? {
        return Ok(Outcome::Acted);
    }
    let followed = follows::followed_server::look(ctx, &checked, at).await.map_err(PassError::Follow)?;
    let (solver, follows) = (&ctx.solver, followed.as_ref());
    let question = ResolveInput { solver, from: &from, request: &request, together, runs: &runs, follows };
    let (answer, undo, alone) = choose(ctx, server, &checked, &plugins, &question, undo, by_hand.is_some()).await?;
    let Some(lock) = &answer.lock else {
        // No lock runs, and the solver found none to start with.
        return in_trouble(PlanningError::no_lock(answer.explanation)).await;
    };

    let (goal, files_problem) = bring_files(ctx, &checked, lock, &runs, &seen).await?;
    if start.is_too_old(LOOK_COUNTS) {
        // The downloads took so long that the observation is too old. The files are present now, so the next pass observes again.
        return Ok(Outcome::Acted);
    }
    let Some((bundle, rendered)) = bring_objects(ctx, &checked, &goal, &seen).await? else {
        return Ok(Outcome::Acted);
    };

    let consent = ApprovalState::of(server, before.last_handled.as_ref(), &goal.files.lock, settled, undo.as_ref(), at);
    let alone_until = by_hand.and_then(Gate::until).or_else(|| checked.windows.next_opening(at));
    let by_hand = by_hand.filter(|_| alone.opens_the_gate());
    let by_hand = by_hand.or_else(|| checked.windows.by_hand(consent.apply_since?, true, at));
    let known = before.available_update.as_ref().filter(|known| known.digest == goal.files.lock);
    let tries_another = Plan::tries_another(&seen, rendered.revision);
    let early = plan::early_gate(&checked.windows, &alone, known, tries_another, at);
    let passes = early.is_some() && alone.early().is_some_and(UrgentUpdate::waits_for_nobody);
    let waits = checked.changes_by_itself() && by_hand.is_none() && consent.apply_since.is_none() && !passes;
    let (gate, follows) = (plan::gate(&checked, &consent, by_hand.or(early), at), follows.filter(|_| waits));
    let mut plan = Plan::new(&checked, &seen, answer, goal, rendered, gate, consent, ctx.config.pace(), at)
        .with_restores(restores)
        .with_alone(alone, alone_until)
        .with_drain(drain);
    (plan.files_problem, plan.undo) = (files_problem, undo);
    let handled = before.last_handled.as_ref();
    plan.refused = plan::refused_by_blackout(server, handled, &plan.consent, &checked.windows, at);
    plan.copies = OnlineBackups::of(server, &checked, &seen, &before, request::is_too_old(ctx, &seen), at);
    plan.hold(&seen, &before, follows, waits, at);
    image_pull::look(ctx, &checked, &seen, &mut plan, at).await?;
    plan.look_for_opportunity(&checked, at);
    set_alarm(ctx, server, &plan, at).await;
    let step = opportunistic::next_step(ctx, &checked, &seen, &mut plan, by_hand.is_some(), at).await;
    // A pass that waited at the window barrier may hold an observation that is too old for the step. Its plan may also use a catalog that
    // was pinned for another goal.
    if !start.allows(step) || !from.keep(ctx, &checked, &plan, step) {
        ctx.look_again(&checked.namespace, &checked.name);
        return Ok(Outcome::Acted);
    }
    if let Some(stopped) = plan.stop_for_crashes(server, &checked, &seen, step, at) {
        // The next pass deletes the pod, based on its own observation.
        report::note_crashes(ctx, server, &before, Some(stopped)).await.map_err(PassError::Report)?;
        return Ok(Outcome::Acted);
    }
    apply::apply_children_before(step, ctx, &checked, &bundle).await?;
    if start.decided.is_older_than(DECISION_COUNTS) {
        // A budget written from an old decision could let a node drain evict the pod.
        return Ok(Outcome::Acted);
    }
    apply::apply_budget(ctx, &checked, plan.drain.budget(step)).await?;
    let hand = StepExecutor::of(ctx, &checked, &seen, &plan, ahead, start.decided);
    let done = act(&hand, &plan, step).await?;
    request::ask(ctx, &seen, &mut plan, step).await;
    report::report(ctx, server, &checked, &PassReport { seen: &seen, plan: &plan, step, done: &done, now: at })
        .await
        .map_err(PassError::Report)?;
    // Objects are cleaned up only when no rollout is in progress. During an update the next step may refer to an object that nothing refers
    // to now.
    if step == Step::Settled {
        apply::clean_up(ctx, &checked, &seen, &bundle, plan.goal.revision, &status_before(ctx, server).history).await?;
    }
    Ok(requeue::in_time(&ctx.messenger.channels_of(server), &plan, &seen, (step, &done), at))
}

/// Returns the checked spec and the state of the server's node, or the reason why no plan can begin.
async fn read(
    server: &PaperMCServer,
    ctx: &Context,
    seen: &observe::Observed,
) -> Result<Result<(check::CheckedServer, Drain), PlanningError>, PassError> {
    let checked = match check::check(server) {
        Ok(checked) if seen.facts.settled.is_some() => checked.past_its_first_start(),
        Ok(checked) => checked,
        Err(complaints) => return Ok(Err(PlanningError::Spec(in_words(&complaints)))),
    };
    let checked = as_it_stands(seen.as_it_runs(checked), &status_before(ctx, server), seen);
    if !checked.eula {
        return Ok(Err(PlanningError::Eula(NO_EULA.to_owned())));
    }
    if let Some(words) = seed_claim::missing_claim(ctx, &checked, seen).await? {
        return Ok(Err(PlanningError::NoClaim(words)));
    }
    let drain = drain::look(ctx, &checked, seen);
    Ok(drain.map(|drain| (checked, drain)).map_err(|complaint| PlanningError::Spec(complaint.to_string())))
}

fn in_words(complaints: &[impl ToString]) -> String {
    complaints.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Records a new user request in the status before the operator acts on it. Returns `true` if it wrote the status.
async fn note_requests(
    ctx: &Context,
    server: &PaperMCServer,
    checked: &check::CheckedServer,
    (seen, before): (&observe::Observed, &PaperMCServerStatus),
    undo: Option<&PinnedSet>,
    restores: &RestoreRequests,
    at: Timestamp,
) -> Result<bool, PassError> {
    if starts_again(server, before) {
        report::note_crashes(ctx, server, before, None).await.map_err(PassError::Report)?;
        return Ok(true);
    }
    if let Some(noted) = undo.and_then(|undo| undo.to_note(server, before.last_handled.as_ref())) {
        report::note_handled(ctx, server, before, noted).await.map_err(PassError::Report)?;
        return Ok(true);
    }
    requested_restore::write_request::note(ctx, server, checked, seen, before, restores, at).await
}

/// Selects the lock to run: the solved one, the pinned set that a user requested, or a partial update.
async fn choose(
    ctx: &Context,
    server: &PaperMCServer,
    checked: &check::CheckedServer,
    plugins: &[Arc<Plugin>],
    question: &ResolveInput<'_>,
    undo: Option<PinnedSet>,
    is_by_hand: bool,
) -> Result<(plan::ResolvedLock, Option<PinnedSet>, PartialSelection), PassError> {
    let mut answer = plan::answer(question.whole().await?, question.runs);
    if let Some(undo) = undo {
        let undo = resolve::bring_back(ctx, checked, undo, &mut answer, question.runs).await?;
        let asked = partial::asked(server).filter(|_| is_by_hand);
        let alone = question.alone(asked, Some(&undo), &mut answer).await?;
        return Ok((answer, Some(undo), alone));
    }
    let alone = if is_by_hand {
        question.alone(partial::asked(server), None, &mut answer).await?
    } else {
        let is_asked_for = |whole: &Lock| approval::is_asked_for(server, whole.digest().as_str());
        let waits = !answer.lock.as_ref().is_some_and(is_asked_for) && question.whole_has_to_wait(&answer);
        let is_meant = |whole: &Lock| !waits && approval::is_named(server, whole.digest().as_str());
        question.early(checked, plugins, waits, is_meant, &mut answer).await?
    };
    Ok((answer, None, alone))
}

/// All Plugins of the server's namespace. Their label selectors decide later which of them apply to the server.
fn plugins_beside(ctx: &Context, server: &PaperMCServer) -> Vec<Arc<Plugin>> {
    ctx.plugins.state().into_iter().filter(|plugin| plugin.namespace() == server.namespace()).collect()
}

/// Applies the server's objects for the goal and returns them with the template as the API server defaults it. The template itself is
/// written by the rollout only. `None` if the replicas were changed, and the server has to be observed again.
async fn bring_objects(
    ctx: &Context,
    server: &check::CheckedServer,
    goal: &records::LockRecord,
    seen: &observe::Observed,
) -> Result<Option<(render::Bundle, Rendered)>, PassError> {
    apply::ensure_secret(ctx, server, seen).await?;
    let bundle = render::build(server, &goal.lock, &goal.files, &ctx.config);
    apply::apply_children(ctx, server, &bundle).await?;
    let rendered = apply::render(ctx, server, &bundle.template).await?;
    let is_scaled = apply::apply_replicas(ctx, server, seen).await?;
    Ok((!is_scaled).then_some((bundle, rendered)))
}

/// Fetches the files of the lock. If that fails and a lock runs already, the running lock stays the goal, and the reason is reported. A
/// release that is broken upstream must not stop the verification of a rollout or the end of a roll-back.
async fn bring_files(
    ctx: &Context,
    server: &check::CheckedServer,
    lock: &Lock,
    runs: &WhatRuns,
    seen: &observe::Observed,
) -> Result<(Arc<records::LockRecord>, Option<String>), PassError> {
    if let Some(running) = runs.record_of(lock) {
        // All files of the running lock are on the volume. An unmanaged JAR cannot block it either, because the server already runs beside
        // that JAR.
        artifacts::offer(ctx, running);
        return Ok((running.clone(), None));
    }
    let brought = artifacts::complete(ctx, &server.namespace, &server.name, lock, runs.lock.as_deref()).await;
    // A first start and a rollout in progress are always completed.
    let may_wait = runs.lock.is_some() && !finish_rollout::goes_on(seen, false);
    let brought = brought.and_then(|record| match seen.report.as_deref().filter(|_| may_wait) {
        Some(report) => artifacts::stands_beside(record, report),
        None => Ok(record),
    });
    match (brought, &runs.lock) {
        (Ok(record), _) => Ok((record, None)),
        (Err(error), Some(running)) => {
            if let artifacts::FilesError::Fetch { file: _, source } = &error {
                ctx.metrics.fetch_failures.get_or_create(&FetchLabels { category: source.category() }).inc();
            }
            let why = ErrorChain(&error).to_string();
            warn!(error = why, "the newer set cannot be brought; what runs stays");
            Ok((running.clone(), Some(why)))
        }
        (Err(error), None) => Err(error.into()),
    }
}

/// Carries out the step. While the step waits for a window, the agent is asked to stage the files, hours before they are needed.
async fn act(hand: &StepExecutor<'_>, plan: &Plan, step: Step) -> Result<StepOutcome, PassError> {
    let failed = |source| PassError::Act { step: step.name(), source };
    let labels = |outcome| StepLabels { step: step.name(), outcome };
    let waits = matches!(step, Step::Wait(WaitingOn::Window { .. })) || plan.waits_to_go_forward(step);
    if !matches!(step, Step::Announce { .. }) {
        hand.ahead.has_acted();
    }
    let done = if waits && plan.wants_staging(hand.seen) {
        // A server that does not run stages later. Staging is not required before the window opens.
        match hand.stage().await {
            Ok(done) => done,
            Err(error) => {
                info!(error = %ErrorChain(&error), "staging has to wait");
                StepOutcome::Nothing
            }
        }
    } else {
        hand.act(step).await.map_err(|source| {
            hand.ctx.metrics.step_total.get_or_create(&labels("failed")).inc();
            failed(source)
        })?
    };
    if done != StepOutcome::Nothing {
        info!(step = step.name(), ?done, "took a step");
        hand.ctx.metrics.step_total.get_or_create(&labels("done")).inc();
    }
    Ok(done)
}

/// Handles a spec that yields no request. The server leaves its solve group.
async fn unread(
    ctx: &Context,
    server: &PaperMCServer,
    in_trouble: impl Future<Output = Result<Outcome, PassError>>,
) -> Result<Outcome, PassError> {
    peers::leave(ctx, &server.namespace().unwrap_or_default(), &server.name_any());
    in_trouble.await
}

/// Continues the rollout in progress if the problem allows that. Otherwise it reports the problem.
async fn trouble(
    ctx: &Context,
    server: &PaperMCServer,
    seen: &observe::Observed,
    what: PlanningError,
    ahead: &PendingPass<'_>,
    looked: Stopwatch,
) -> Result<Outcome, PassError> {
    if what.lets_a_trial_end()
        && let Some(outcome) = finish_rollout::see_through(ctx, server, seen, what.in_the_way(), ahead, looked).await?
    {
        return Ok(outcome);
    }
    if !what.is_over_in_a_moment() {
        update_slot::give_up(ctx, server);
    }
    report::report_trouble(ctx, server, seen, &what, looked.started_at()).await.map_err(PassError::Report)?;
    Ok(what.outcome())
}
