//! Pure. Models the effect of an action, and the invariants that must hold when it is executed.

use scheduler::observation::ImagesOnNode;

use super::Moves;
use crate::copies::{Order, Wish};
use crate::deed::{Again, Deed, F, For};
use crate::world::{Agent, Asking, ByUs, Clock, L, Mark, P, Rev, Rule, State, WindowNow};

/// Its node was asked, and does not have them.
fn would_pull(w: &State) -> bool {
    matches!(w.images, ImagesOnNode::OnTheirWay | ImagesOnNode::Failed)
}

impl Moves<'_> {
    /// Whether this server may be stopped, checked when the write is made. Players join and leave at any time, so a running server counts as one
    /// with players online.
    fn check_stop(&mut self, w: &State, act: For, about: Option<Rev>, unasked: bool) {
        let Some(p) = w.busy() else { return };
        self.must(!p.is_starting() || p.late, "5 a starting pod is deleted before its deadline");
        if self.s.policy == Asking::Ignore {
            return self.note("stopped under policy Ignore (reported)");
        }
        if unasked && w.agent != Agent::SilentBeyondPatience && self.sleeper {
            return self.note("1 exempt: the agent answered again between an unasked decision and its write");
        }
        // An announcement of a restart that the update replaces is not an announcement in a window.
        let in_this = |f: &F| f.window && (!f.clock || w.window == WindowNow::Shut);
        let for_this = |f: &F| f.act == act && Some(f.about) == about && f.pod && (act != For::Update || in_this(f));
        if unasked && w.agent == Agent::SilentBeyondPatience {
            let counts_down = w.announced.filter(for_this).is_some_and(|f| !f.good);
            self.must(
                !counts_down,
                "1 nobody can be asked, and players are stopped before the end that they were told",
            );
            return self.note("stopped unasked after the agent was silent beyond patience (reported)");
        }
        let up = p.life == L::Up || w.players;
        let announced = w.announced.filter(for_this).is_some_and(|f| f.good && f.ok);
        let saved = w.saved.filter(for_this).is_some_and(|f| f.ok && f.good);
        self.must(
            !up || announced,
            "1 stopped without a completed announcement to this pod, lately and in this window",
        );
        self.must(!up || saved, "1 stopped without a fresh confirmed save of this pod");
    }

    /// Decided while the server was empty, by a process that slept until a player had joined. Only `not_after` fences the seconds between the
    /// last observation and the write. A restart that is also due is no excuse, because players were not warned of that one.
    fn is_too_late(&self, w: &State) -> bool {
        let told_when_empty = |f: F| f.act == For::Update && f.pod && !f.clock && !f.window;
        let joined_since = w.announced.is_some_and(told_when_empty);
        self.sleeper && self.s.opportunistic && w.window == WindowNow::Shut && (joined_since || !w.nobody_minds(self.s))
    }

    /// Whether an eviction may stop this server. Warning and save for this mark count at any age, because the hook saves again.
    pub(super) fn check_eviction(&mut self, w: &State) {
        let Some(p) = w.busy() else { return };
        self.must(p.life == L::Up && Some(p.rev) == w.settled, "12 let go before it is up and proven");
        if self.s.policy == Asking::Ignore || w.agent == Agent::SilentBeyondPatience {
            return;
        }
        let for_this = |f: &F| f.act == For::Drain && f.pod && f.good;
        self.must(
            w.announced.is_some_and(|f| for_this(&f)),
            "12 let go before its players were told and had their time",
        );
        let saved = w.saved.is_some_and(|f| f.act == For::Drain && f.pod && f.ok);
        self.must(saved, "12 let go before its world was saved");
    }

    /// Deletes the pod on schedule, or for a backup. No template is written.
    fn restart(&mut self, w: &mut State, copy: bool, unasked: bool) {
        let whole = Some(w.template) == w.settled && w.current == w.template && !w.foreign;
        self.must(!w.open && whole, "3 restarted while something else stands behind the door");
        let is_down = |p: P| p.life == L::Down || (p.is_starting() && p.late);
        let may_go = |p: P| Some(p.rev) == w.settled && (p.life == L::Up || (copy && is_down(p)));
        let is_settled = w.busy().is_some_and(may_go);
        self.must(is_settled || self.sleeper, "3 restarted although it does not run what is settled");
        let is_due = if copy { w.wish == Wish::Asked } else { w.clock == Clock::Due };
        self.must(is_due || self.sleeper, "4 a second restart for one instant");
        self.must(!copy || !w.obeyed, "13 stopped for a copy that was put in place already");
        let is_back = w.again.is_some_and(|again| again.copy && !again.of_now);
        self.must(!(copy && is_back), "13 stopped for a copy once more, before what came for it has proven itself");
        self.check_stop(w, if copy { For::Copy } else { For::Restart }, Some(Rev::A), unasked);
        if copy {
            w.order_for_copy = w.settled;
        }
        (w.again, w.by_us) = (Some(Again { of_now: true, copy }), ByUs::Nothing);
        // By its UID: either the intended pod, or none.
        if let Some(p) = w.busy() {
            w.pod = Some(p.stopping());
        }
    }

    fn commit(&mut self, old: &State, w: &mut State, unasked: bool) {
        let in_a_window = w.window != WindowNow::Shut;
        let too_late = self.is_too_late(old);
        let gate_open = in_a_window || w.nobody_minds(self.s) || too_late;
        self.must(gate_open, "2 committed outside the gate");
        if !in_a_window {
            self.must(!unasked, "11 nobody could be asked, and an update comes outside of every window");
            let settled = w.settled.map_or(0, |rev| self.s.format[rev.index()]);
            let is_one_way = self.s.format[w.template.index()] > settled;
            self.must(!is_one_way, "11 a newer Minecraft comes outside of every window");
        }
        self.must(w.failed & w.template.bit() == 0, "8 a failed goal is tried again");
        let format = self.s.format[w.template.index()];
        self.must(format >= w.floor, "6 a Minecraft below the floor is committed");
        let would_pull = old.busy().is_some() && would_pull(old);
        self.must(!would_pull || self.sleeper, "14 stopped for an image that its node has not got");
        self.must(w.update == w.template, "9 committed before the controller saw the template");
        if too_late {
            self.note("11 exempt: somebody joined between the look that found nobody and the commit that it led to");
        } else {
            self.check_stop(old, For::Update, Some(w.template), unasked);
        }
        if w.pod.is_none_or(|p| p.rev != w.template) {
            w.by_us = ByUs::Update;
        }
        w.open = true;
        w.expect = w.template;
    }

    /// From the failed revision to the stable one.
    fn roll_back(&mut self, old: &State, w: &mut State, to: Rev, (asked, unasked): (bool, bool)) {
        self.must(!asked || !w.obeyed, "13 stopped for a copy that was put in place already");
        w.order_for_copy = if asked { Some(to) } else { w.order_for_copy };
        w.again = asked.then_some(Again { of_now: true, copy: true });
        let about = w.pod.map(|p| p.rev);
        let proven = w.settled.is_none_or(|settled| settled == to);
        let remembered = w.settled.is_none() || about.is_none_or(|rev| w.failed & rev.bit() > 0);
        self.must(proven, "8 rolled back to something that is not settled");
        self.must(remembered, "8 rolled back without remembering the failure");
        self.check_stop(old, For::RollBack, about, unasked);
        (w.template, w.open, w.expect, w.by_us, w.foreign) = (to, true, to, ByUs::RollBack, false);
    }

    /// To another goal, from a failed revision without a rollback, or from a stable one that is refused the worlds.
    fn go_forward(&mut self, old: &State, w: &mut State, (to, unasked): (Rev, bool), gate_open: bool) {
        self.must(gate_open, "2 gone forward outside the gate");
        (w.template, w.open, w.expect, w.foreign) = (to, true, to, false);
        (w.order, w.order_for_copy) = (None, None);
        if self.sleeper && old.order_for_copy == old.settled && old.order_for_copy.is_some() {
            // The request is not a write to the StatefulSet, so only `not_after` fences these seconds. The backup still exists.
            w.by_us = ByUs::Nothing;
            return self.note("5 exempt: a person's copy was ordered between a decision to go forward and its write");
        }
        let failed = w.pod.map_or(0, |p| p.rev.bit());
        // That pod may have been deleted since a delayed process observed it.
        let was_refused = |p: P| Some(p.rev) == w.settled && (p.life == L::Refused || self.sleeper);
        let is_refused = old.pod.is_none_or(was_refused);
        if is_refused {
            self.note("gone forward from what settled, to which the worlds are too new");
        }
        self.must(w.failed & failed == failed || is_refused, "8 gone forward without remembering the failure");
        self.must(w.failed & to.bit() == 0, "8 a failed goal is tried again");
        self.must(Some(to) != w.settled, "8 gone forward to what had settled");
        self.must(self.s.format[to.index()] >= w.floor, "6 a Minecraft below the floor is committed");
        let moved = w.settled.is_some_and(|rev| self.s.format[rev.index()] < w.floor) || w.mixed;
        self.must(moved || self.sleeper, "8 gone forward although what had settled can open the worlds");
        self.must(!would_pull(old) || self.sleeper, "14 stopped for an image that its node has not got");
        self.check_stop(old, For::Update, Some(to), unasked);
        w.by_us = ByUs::Update;
    }

    fn announce(&mut self, w: &mut State, gate_open: bool, (act, about, clock): (For, Rev, bool), short: bool) {
        let told = F { act, about, pod: true, window: true, clock, good: false, short, ok: true };
        let is_known = w.announced.is_some_and(|known| F { short, ..known } == told);
        let was_told = w.announced.is_some_and(|known| F { short, good: false, ok: true, ..known } == told);
        let has_begun = w.announced.is_some_and(|known| known.act == act && known.pod);
        let is_refused =
            w.saved.is_some_and(|save| F { good: false, ok: true, ..save } == F { short: false, ..told } && !save.ok);
        self.must(!is_refused || self.sleeper, "1 players are told once more of a stop while its save is refused");
        self.must(!is_known || short || self.sleeper, "1 players who were told when are told a later end");
        let needs_window = act == For::Update;
        if needs_window {
            self.check_begins(w, about);
        }
        (w.announced, w.forgot) = (Some(told), false);
        // It will be from before the end of this countdown.
        w.saved = w.saved.map(|save| F { good: save.good && !save.ok, ..save });
        let would_pull = needs_window && would_pull(w);
        self.must(
            !would_pull || self.sleeper,
            "14 players are warned of a stop for an image that their node has not got",
        );
        self.must(!needs_window || gate_open, "2 announced outside the window");
        let last_part = w.window == WindowNow::Ending && !self.sleeper;
        self.must(!needs_window || !last_part || was_told, "2 an update begins in the last part of the window");
        self.must(!short || !w.players || self.sleeper, "1 players get the countdown of an empty server");
        let waits_for_its_window = w.window == WindowNow::Shut && w.settled.is_some_and(|settled| settled != w.goal);
        let comes_tonight = self.s.one_night && waits_for_its_window && w.failed & w.goal.bit() == 0;
        self.must(
            act != For::Restart || !comes_tonight || has_begun || self.sleeper,
            "4 a restart begins in the night of an update that is sure to come",
        );
    }

    /// An agent that does not know of a countdown receives it once more.
    fn tell_again(&mut self, w: &mut State, (act, about, clock): (For, Rev, bool), short: bool) {
        let told = F { act, about, pod: true, window: true, clock, good: false, short, ok: true };
        let is_recorded = w.announced.is_some_and(|known| F { window: true, ..known } == told);
        self.must(is_recorded || self.sleeper, "1 players are told another end than the one that they were told");
        w.forgot = !is_recorded;
    }

    pub(super) fn perform(&mut self, old: &State, deed: Deed) -> State {
        let mut w = *old;
        // Facts are annotations of the StatefulSet.
        if deed.is_written() {
            w.set_written();
        }
        let gate_open = w.window != WindowNow::Shut || w.nobody_minds(self.s) || self.is_too_late(old);
        match deed {
            Deed::Create { rev, open } => {
                (w.exists, w.template, w.update, w.current, w.open, w.foreign) = (true, rev, rev, rev, open, false);
                w.expect = rev;
                let proven = w.settled.is_none_or(|settled| settled == rev);
                self.must(proven, "3 a lost StatefulSet is made again with something that was never proven");
            }
            Deed::Announce { act, about, clock, short } => self.announce(&mut w, gate_open, (act, about, clock), short),
            Deed::Reannounce { act, about, clock, short } => self.tell_again(&mut w, (act, about, clock), short),
            Deed::Save { act, about, clock } => {
                w.saved =
                    Some(F { act, about, pod: true, window: true, clock, good: true, short: false, ok: !w.refuses });
            }
            Deed::Write(rev) => {
                self.must(gate_open, "2 template written outside the gate");
                self.check_begins(old, rev);
                let told = w.announced.is_some_and(|f| f.act == For::Update && f.about == rev && f.pod && f.window);
                let may = w.window != WindowNow::Ending || told || self.sleeper;
                self.must(may, "2 an update begins in the last part of the window");
                self.must(w.failed & rev.bit() == 0, "8 a failed goal is tried again");
                w.template = rev;
                (w.order, w.order_for_copy) = (None, None);
                w.foreign &= self.s.without == Some(Rule::TemplateIsReplaced);
            }
            Deed::Commit { unasked } => self.commit(old, &mut w, unasked),
            Deed::Restore { rev, open } => {
                let on_its_way = |p: crate::world::P| p.rev == rev || p.life == L::Stopping;
                let took_effect = w.pod.is_none_or(|p| p.rev != rev || p.life == L::Stopping);
                if w.by_us == ByUs::Update && w.open && took_effect {
                    w.raced = true;
                    self.note("commit taken back in the very moment in which it took effect (one restart for nothing)");
                }
                let restarts = open && !w.pod.is_none_or(on_its_way);
                self.must(!restarts || self.sleeper, "2 a restore with an open door restarts a pod");
                (w.template, w.open, w.expect, w.by_us) = (rev, open, rev, ByUs::Nothing);
                w.foreign &= self.s.without == Some(Rule::TemplateIsReplaced);
            }
            Deed::MarkFailed(rev) => {
                w.failed |= rev.bit();
                self.must(Some(rev) != w.settled, "8 the settled revision is called failed");
            }
            Deed::Order { to, unless_played } => {
                let failed = w.pod.map_or(to, |p| p.rev);
                w.order = Some(Order { to, failed, unless_played });
            }
            Deed::OrderCopy(to) => {
                let refused = w.pod.is_some_and(|p| p.life == L::Refused && p.rev == to);
                self.must(refused || self.sleeper, "13 a copy is ordered for a server that is not down for it");
                w.order_for_copy = Some(to);
            }
            Deed::RollBack { to, asked, unasked } => self.roll_back(old, &mut w, to, (asked, unasked)),
            Deed::RollForward { to, unasked } => self.go_forward(old, &mut w, (to, unasked), gate_open),
            Deed::Close(rev) => {
                let agreed = w.current == rev && w.update == rev && w.template == rev;
                self.must(!w.open || agreed, "9 closed before the controller called it current");
                let condemned = w.failed & rev.bit() > 0 && Some(rev) != w.settled;
                self.must(!condemned, "8 settled although it is recorded as failed");
                (w.open, w.order, w.order_for_copy) = (false, None, None);
                // A revision that was restarted for a user must still be verified.
                w.again = w.again.filter(|_| Some(rev) == w.settled);
                w.settled = Some(rev);
                w.draining = None;
                (w.expect, w.by_us) = (rev, ByUs::Nothing);
                w.tampered &= w.current != rev || w.template != rev;
            }
            Deed::Restart { copy, unasked } => self.restart(&mut w, copy, unasked),
            Deed::EndRestart => {
                let is_proven = w.pod.is_some_and(|p| p.life == L::Up) && w.again.is_some_and(|again| !again.of_now);
                self.must(is_proven || self.sleeper, "4 a restart ends before another pod is up");
                (w.again, w.announced, w.saved) = (None, None, None);
            }
            Deed::BeginDrain => {
                self.must(w.mark == Mark::There || self.sleeper, "12 a drain begins on a node that stays");
                w.draining = Some(true);
            }
            Deed::EndDrain => {
                self.must(w.mark != Mark::There || self.sleeper, "12 a drain ends while the node is marked");
                let of_another = |f: &F| f.act != For::Drain;
                (w.draining, w.announced, w.saved) = (None, w.announced.filter(of_another), w.saved.filter(of_another));
            }
            Deed::CancelAnnouncement { act, about } => {
                let of_another = |f: &F| (f.act, f.about) != (act, about);
                (w.announced, w.saved) = (w.announced.filter(of_another), w.saved.filter(of_another));
            }
        }
        w
    }
}
