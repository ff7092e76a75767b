//! Pure. Models the effect of an action, and the invariants that must hold when it is executed.

use scheduler::observation::ImagesOnNode;

use super::Moves;
use crate::action::{Action, Again, F, For};
use crate::backups::{RestoreChoice, RollbackRequest};
use crate::state::{Agent, Asking, ByUs, Clock, L, Mark, P, Rev, Rule, State, WindowNow};

/// Whether the server's node was asked, and lacks images of the goal.
fn would_pull(w: &State) -> bool {
    matches!(w.images, ImagesOnNode::Pulling | ImagesOnNode::Failed)
}

impl Moves<'_> {
    /// Whether this server may be stopped, checked when the write is made. Players join and leave at any time, so a running server counts as one
    /// with players online.
    fn check_stop(&mut self, w: &State, disruption: For, revision: Option<Rev>, agent_unreachable: bool) {
        let Some(p) = w.active_pod() else { return };
        self.check(!p.is_starting() || p.late, "5 a starting pod is deleted before its deadline");
        if self.s.policy == Asking::Ignore {
            return self.record_event("stopped under policy Ignore (reported)");
        }
        if agent_unreachable && w.agent != Agent::SilentBeyondTimeout && self.is_delayed {
            return self.record_event("1 exempt: the agent answered again between a decision without it and the write");
        }
        // An announcement of a restart that the update replaces is not an announcement in a window.
        let in_this = |f: &F| f.window && (!f.of_restart || w.window == WindowNow::Shut);
        let for_this = |f: &F| {
            f.disruption == disruption
                && Some(f.revision) == revision
                && f.pod
                && (disruption != For::Update || in_this(f))
        };
        if agent_unreachable && w.agent == Agent::SilentBeyondTimeout {
            let counts_down = w.announced.filter(for_this).is_some_and(|f| !f.good);
            self.check(!counts_down, "1 the agent is unreachable, and the server stops before the announced end");
            return self.record_event("stopped after the agent was unreachable beyond the timeout (reported)");
        }
        let up = p.phase == L::Up || w.players;
        let announced = w.announced.filter(for_this).is_some_and(|f| f.good && f.is_confirmed);
        let saved = w.saved.filter(for_this).is_some_and(|f| f.is_confirmed && f.good);
        self.check(!up || announced, "1 stopped without a completed, recent announcement to this pod and window");
        self.check(!up || saved, "1 stopped without a fresh confirmed save of this pod");
    }

    /// Decided while the server was empty, by a process that slept until a player had joined. Only `not_after` fences the seconds between the
    /// last observation and the write. A restart that is also due is no excuse, because players were not warned of that one.
    fn is_too_late(&self, w: &State) -> bool {
        let is_announced_while_empty = |f: F| f.disruption == For::Update && f.pod && !f.of_restart && !f.window;
        let joined_since = w.announced.is_some_and(is_announced_while_empty);
        self.is_delayed
            && self.s.opportunistic
            && w.window == WindowNow::Shut
            && (joined_since || !w.is_unobtrusive(self.s))
    }

    /// Whether an eviction may stop this server. Warning and save for this mark count at any age, because the hook saves again.
    pub(super) fn check_eviction(&mut self, w: &State) {
        let Some(p) = w.active_pod() else { return };
        self.check(p.phase == L::Up && Some(p.rev) == w.stable, "12 eviction allowed before it is up and verified");
        if self.s.policy == Asking::Ignore || w.agent == Agent::SilentBeyondTimeout {
            return;
        }
        let for_this = |f: &F| f.disruption == For::Drain && f.pod && f.good;
        self.check(
            w.announced.is_some_and(|f| for_this(&f)),
            "12 eviction allowed before the countdown of its players had ended",
        );
        let saved = w.saved.is_some_and(|f| f.disruption == For::Drain && f.pod && f.is_confirmed);
        self.check(saved, "12 eviction allowed before the world was saved");
    }

    /// Deletes the pod on schedule, or for a backup. No template is written.
    fn restart(&mut self, w: &mut State, for_backup: bool, agent_unreachable: bool) {
        let whole = Some(w.template) == w.stable && w.current == w.template && !w.foreign;
        self.check(!w.open && whole, "3 restarted with an open partition or another template");
        let is_down = |p: P| p.phase == L::Down || (p.is_starting() && p.late);
        let may_go = |p: P| Some(p.rev) == w.stable && (p.phase == L::Up || (for_backup && is_down(p)));
        let is_allowed = w.active_pod().is_some_and(may_go);
        self.check(is_allowed || self.is_delayed, "3 restarted although it does not run the stable revision");
        let is_due = if for_backup { w.user_request == RestoreChoice::Requested } else { w.clock == Clock::Due };
        self.check(is_due || self.is_delayed, "4 a second restart for one instant");
        self.check(!for_backup || !w.user_restore_done, "13 stopped for a backup that is restored already");
        let is_restarted = w.recreated.is_some_and(|again| again.for_backup && !again.is_current_pod);
        self.check(
            !(for_backup && is_restarted),
            "13 stopped for a backup once more, before the restarted pod is verified",
        );
        self.check_stop(w, if for_backup { For::UserRestore } else { For::Restart }, Some(Rev::A), agent_unreachable);
        if for_backup {
            w.user_restore_for = w.stable;
        }
        (w.recreated, w.by_operator) = (Some(Again { is_current_pod: true, for_backup }), ByUs::Nothing);
        // By its UID: either the intended pod, or none.
        if let Some(p) = w.active_pod() {
            w.pod = Some(p.stopping());
        }
    }

    fn commit(&mut self, old: &State, w: &mut State, agent_unreachable: bool) {
        let in_a_window = w.window != WindowNow::Shut;
        let too_late = self.is_too_late(old);
        let gate_open = in_a_window || w.is_unobtrusive(self.s) || too_late;
        self.check(gate_open, "2 committed outside the gate");
        if !in_a_window {
            self.check(!agent_unreachable, "11 the agent is unreachable, and an update begins outside of windows");
            let stable = w.stable.map_or(0, |rev| self.s.format[rev.index()]);
            let is_irreversible = self.s.format[w.template.index()] > stable;
            self.check(!is_irreversible, "11 an update to a newer Minecraft begins outside of windows");
        }
        self.check(w.failed & w.template.bit() == 0, "8 a failed goal is tried again");
        let format = self.s.format[w.template.index()];
        self.check(format >= w.floor, "6 a Minecraft below the floor is committed");
        // A pod that the cluster does not run has no process to stop.
        let would_pull = old.active_pod().is_some_and(|p| p.phase != L::Pending) && would_pull(old);
        self.check(!would_pull || self.is_delayed, "14 stopped for an image that its node lacks");
        self.check(w.update == w.template, "9 committed before the controller saw the template");
        if too_late {
            self.record_event("11 exempt: a player joined between observation and commit of an empty server");
        } else {
            self.check_stop(old, For::Update, Some(w.template), agent_unreachable);
        }
        if w.pod.is_none_or(|p| p.rev != w.template) {
            w.by_operator = ByUs::Update;
        }
        w.open = true;
        w.expect = w.template;
    }

    /// From the failed revision to the stable one.
    fn roll_back(&mut self, old: &State, w: &mut State, to: Rev, (requested_by_user, agent_unreachable): (bool, bool)) {
        self.check(!requested_by_user || !w.user_restore_done, "13 stopped for a backup that is restored already");
        w.user_restore_for = if requested_by_user { Some(to) } else { w.user_restore_for };
        w.recreated = requested_by_user.then_some(Again { is_current_pod: true, for_backup: true });
        let revision = w.pod.map(|p| p.rev);
        let is_stable = w.stable.is_none_or(|stable| stable == to);
        let remembered = w.stable.is_none() || revision.is_none_or(|rev| w.failed & rev.bit() > 0);
        self.check(is_stable, "8 rolled back to a revision that is not stable");
        self.check(remembered, "8 rolled back without recording the failure");
        self.check_stop(old, For::RollBack, revision, agent_unreachable);
        (w.template, w.open, w.expect, w.by_operator, w.foreign) = (to, true, to, ByUs::RollBack, false);
    }

    /// To another goal, from a failed revision without a rollback, or from a stable one that is refused the worlds.
    fn roll_forward(&mut self, old: &State, w: &mut State, (to, agent_unreachable): (Rev, bool), gate_open: bool) {
        self.check(gate_open || w.stable.is_none(), "2 rolled forward outside the gate");
        (w.template, w.open, w.expect, w.foreign) = (to, true, to, false);
        (w.restore_request, w.user_restore_for) = (None, None);
        if self.is_delayed && old.user_restore_for == old.stable && old.user_restore_for.is_some() {
            // The request is not a write to the StatefulSet, so only `not_after` fences these seconds. The backup still exists.
            w.by_operator = ByUs::Nothing;
            return self.record_event("5 exempt: a restore was requested after the decision to roll forward");
        }
        let has_failed = w.failed & to.bit() > 0 && Some(to) != w.stable;
        self.check(!has_failed, "8 a failed goal is tried again");
        self.check(self.s.format[to.index()] >= w.floor, "6 a Minecraft below the floor is committed");
        // A delayed process has observed the pod before it was deleted.
        let was_pending = |p: P| p.phase == L::Pending || self.is_delayed && self.s.waits && !p.is_starting();
        if old.pod.is_some_and(was_pending) {
            w.by_operator = ByUs::Update;
            return;
        }
        let failed = w.pod.map_or(0, |p| p.rev.bit());
        // That pod may have been deleted since a delayed process observed it.
        let was_refused = |p: P| Some(p.rev) == w.stable && (p.phase == L::Refused || self.is_delayed);
        let is_refused = old.pod.is_none_or(was_refused);
        if is_refused {
            self.record_event("rolled forward from a stable revision that cannot open the worlds");
        }
        self.check(w.failed & failed == failed || is_refused, "8 rolled forward without recording the failure");
        self.check(Some(to) != w.stable, "8 rolled forward to the stable revision");
        let moved = w.stable.is_some_and(|rev| self.s.format[rev.index()] < w.floor) || w.mixed;
        self.check(moved || self.is_delayed, "8 rolled forward although the stable revision can open the worlds");
        self.check(!would_pull(old) || self.is_delayed, "14 stopped for an image that its node lacks");
        self.check_stop(old, For::Update, Some(to), agent_unreachable);
        w.by_operator = ByUs::Update;
    }

    fn announce(
        &mut self,
        w: &mut State,
        gate_open: bool,
        (disruption, revision, of_restart): (For, Rev, bool),
        is_short: bool,
    ) {
        let fact =
            F { disruption, revision, pod: true, window: true, of_restart, good: false, is_short, is_confirmed: true };
        let is_known = w.announced.is_some_and(|recorded| F { is_short, ..recorded } == fact);
        let was_announced =
            w.announced.is_some_and(|recorded| F { is_short, good: false, is_confirmed: true, ..recorded } == fact);
        let has_begun = w.announced.is_some_and(|recorded| recorded.disruption == disruption && recorded.pod);
        let is_refused = w.saved.is_some_and(|save| {
            F { good: false, is_confirmed: true, ..save } == F { is_short: false, ..fact } && !save.is_confirmed
        });
        self.check(!is_refused || self.is_delayed, "1 players are warned again of a stop while its save is refused");
        self.check(!is_known || is_short || self.is_delayed, "1 players who were warned are told a later end");
        let needs_window = disruption == For::Update;
        if needs_window {
            self.check_begins(w, revision);
        }
        (w.announced, w.forgot) = (Some(fact), false);
        // The save will be from before the end of this countdown.
        w.saved = w.saved.map(|save| F { good: save.good && !save.is_confirmed, ..save });
        let would_pull = needs_window && would_pull(w);
        self.check(!would_pull || self.is_delayed, "14 players are warned of a stop for an image their node lacks");
        self.check(!needs_window || gate_open, "2 announced outside the window");
        let last_part = w.window == WindowNow::Ending && !self.is_delayed;
        self.check(!needs_window || !last_part || was_announced, "2 an update begins in the last part of the window");
        self.check(!is_short || !w.players || self.is_delayed, "1 players get the countdown of an empty server");
        let waits_for_its_window = w.window == WindowNow::Shut && w.stable.is_some_and(|stable| stable != w.goal);
        let is_update_due = self.s.one_night && waits_for_its_window && w.failed & w.goal.bit() == 0;
        self.check(
            disruption != For::Restart || !is_update_due || has_begun || self.is_delayed,
            "4 a restart begins in the night of an update that is certain",
        );
    }

    /// An agent that does not know of a countdown receives it once more.
    fn reannounce(&mut self, w: &mut State, (disruption, revision, of_restart): (For, Rev, bool), is_short: bool) {
        let fact =
            F { disruption, revision, pod: true, window: true, of_restart, good: false, is_short, is_confirmed: true };
        let is_recorded = w.announced.is_some_and(|recorded| F { window: true, ..recorded } == fact);
        self.check(is_recorded || self.is_delayed, "1 players are told another end than the announced one");
        w.forgot = !is_recorded;
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each action")]
    pub(super) fn perform(&mut self, old: &State, action: Action) -> State {
        let mut w = *old;
        // Facts are annotations of the StatefulSet.
        if action.is_written() {
            w.bump_resource_version();
        }
        let gate_open = w.window != WindowNow::Shut || w.is_unobtrusive(self.s) || self.is_too_late(old);
        match action {
            Action::Create { rev, open } => {
                (w.exists, w.template, w.update, w.current, w.open, w.foreign) = (true, rev, rev, rev, open, false);
                w.expect = rev;
                let is_stable = w.stable.is_none_or(|stable| stable == rev);
                self.check(is_stable, "3 a lost StatefulSet is recreated with a revision that was never verified");
            }
            Action::Announce { disruption, revision, of_restart, is_short } => {
                self.announce(&mut w, gate_open, (disruption, revision, of_restart), is_short);
            }
            Action::Reannounce { disruption, revision, of_restart, is_short } => {
                self.reannounce(&mut w, (disruption, revision, of_restart), is_short);
            }
            Action::Save { disruption, revision, of_restart } => {
                w.saved = Some(F {
                    disruption,
                    revision,
                    pod: true,
                    window: true,
                    of_restart,
                    good: true,
                    is_short: false,
                    is_confirmed: !w.refuses,
                });
            }
            Action::WriteTemplate(rev) => {
                self.check(gate_open, "2 template written outside the gate");
                self.check_begins(old, rev);
                let is_announced =
                    w.announced.is_some_and(|f| f.disruption == For::Update && f.revision == rev && f.pod && f.window);
                let may = w.window != WindowNow::Ending || is_announced || self.is_delayed;
                self.check(may, "2 an update begins in the last part of the window");
                self.check(w.failed & rev.bit() == 0, "8 a failed goal is tried again");
                w.template = rev;
                (w.restore_request, w.user_restore_for) = (None, None);
                w.foreign &= self.s.without == Some(Rule::TemplateIsReplaced);
            }
            Action::Commit { agent_unreachable } => self.commit(old, &mut w, agent_unreachable),
            Action::Restore { rev, open } => {
                let is_replaced = |p: crate::state::P| p.rev == rev || p.phase == L::Stopping;
                let took_effect = w.pod.is_none_or(|p| p.rev != rev || p.phase == L::Stopping);
                if w.by_operator == ByUs::Update && w.open && took_effect {
                    w.raced = true;
                    self.record_event("commit reverted at the moment of its effect (one unnecessary restart)");
                }
                let restarts = open && !w.pod.is_none_or(is_replaced);
                self.check(!restarts || self.is_delayed, "2 a restore with an open partition restarts a pod");
                (w.template, w.open, w.expect, w.by_operator) = (rev, open, rev, ByUs::Nothing);
                w.foreign &= self.s.without == Some(Rule::TemplateIsReplaced);
            }
            Action::MarkFailed(rev) => {
                w.failed |= rev.bit();
                self.check(Some(rev) != w.stable, "8 the stable revision is recorded as failed");
                let is_pending = old.pod.is_some_and(|p| p.phase == L::Pending);
                self.check(!is_pending || self.is_delayed, "16 a revision fails that the cluster has not run");
            }
            Action::RequestRestore { to, unless_played } => {
                let failed = w.pod.map_or(to, |p| p.rev);
                w.restore_request = Some(RollbackRequest { to, failed, unless_played });
            }
            Action::RequestUserRestore(to) => {
                let refused = w.pod.is_some_and(|p| p.phase == L::Refused && p.rev == to);
                self.check(refused || self.is_delayed, "13 a restore is requested for a server that is not down");
                w.user_restore_for = Some(to);
            }
            Action::RollBack { to, requested_by_user, agent_unreachable } => {
                self.roll_back(old, &mut w, to, (requested_by_user, agent_unreachable));
            }
            Action::RollForward { to, agent_unreachable } => {
                self.roll_forward(old, &mut w, (to, agent_unreachable), gate_open);
            }
            Action::MarkStable(rev) => {
                let agreed = w.current == rev && w.update == rev && w.template == rev;
                self.check(!w.open || agreed, "9 closed before the controller reported it as current");
                let condemned = w.failed & rev.bit() > 0 && Some(rev) != w.stable;
                self.check(!condemned, "8 marked as stable although it is recorded as failed");
                (w.open, w.restore_request, w.user_restore_for) = (false, None, None);
                // A revision that was restarted for a user must still be verified.
                w.recreated = w.recreated.filter(|_| Some(rev) == w.stable);
                w.stable = Some(rev);
                w.draining = None;
                (w.expect, w.by_operator) = (rev, ByUs::Nothing);
                w.tampered &= w.current != rev || w.template != rev;
            }
            Action::Restart { for_backup, agent_unreachable } => self.restart(&mut w, for_backup, agent_unreachable),
            Action::EndRestart => {
                let is_verified =
                    w.pod.is_some_and(|p| p.phase == L::Up) && w.recreated.is_some_and(|again| !again.is_current_pod);
                self.check(is_verified || self.is_delayed, "4 a restart ends before another pod is up");
                (w.recreated, w.announced, w.saved) = (None, None, None);
            }
            Action::BeginDrain => {
                self.check(w.mark == Mark::Set || self.is_delayed, "12 a drain begins on a node without a mark");
                w.draining = Some(true);
            }
            Action::EndDrain => {
                self.check(w.mark != Mark::Set || self.is_delayed, "12 a drain ends while the node is marked");
                let of_another = |f: &F| f.disruption != For::Drain;
                (w.draining, w.announced, w.saved) = (None, w.announced.filter(of_another), w.saved.filter(of_another));
            }
            Action::CancelAnnouncement { disruption, revision } => {
                let of_another = |f: &F| (f.disruption, f.revision) != (disruption, revision);
                (w.announced, w.saved) = (w.announced.filter(of_another), w.saved.filter(of_another));
            }
        }
        w
    }
}
