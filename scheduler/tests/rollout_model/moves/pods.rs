//! Pure. Models kubelet, init container, server, agent and players.

use super::{Kind, Moves};
use crate::copies::{ColdCopy, Wish};
use crate::world::{Agent, ByUs, Fate, Judged, L, P, Rev, Rule, State};

impl Moves<'_> {
    pub(super) fn pod(&mut self, w: &State) {
        let Some(p) = w.pod else { return };
        let format = self.s.format[p.rev.index()];
        let fate = self.s.fate[p.rev.index()];
        let becomes = |life| State { pod: Some(P { life, ..p }), ..*w };
        match p.life {
            L::Stopping | L::Lost => {
                let mut to = *w;
                to.pod_gone();
                if p.life == L::Stopping {
                    self.to(Kind::World, "stopped", to);
                } else {
                    self.to(Kind::Help, "a person frees the lost node", to);
                }
            }
            L::Init => self.init(w, p),
            L::Starting if w.mixed => {}
            L::Starting if format > w.floor => {
                let to = State { mixed: true, ..becomes(L::Migrating) };
                self.to(Kind::World, "begins to move the world", to);
            }
            L::Starting => {
                self.must(format >= w.floor, "6 a Minecraft below the floor is started");
                if fate != Fate::NeverReady {
                    // readyReplicas is part of the StatefulSet's status, so a decision about a "never Ready" pod is refused now.
                    let mut to = becomes(L::Up);
                    to.set_written();
                    self.to(Kind::World, "ready", to);
                }
            }
            L::Migrating => {
                let to = State { mixed: false, floor: format, ..becomes(L::Starting) };
                self.to(Kind::World, "world moved", to);
            }
            L::Up | L::Down => {
                self.proof(w, p);
                if p.life == L::Down {
                    let mut to = becomes(L::Up);
                    to.set_written();
                    self.to(Kind::World, "restarts in place", to);
                }
            }
            // The kubelet retries in any case. The model includes only retries that change the answer.
            L::Refused if w.order_for_copy == Some(p.rev) && !w.obeyed => {
                self.to(Kind::World, "the init container is tried again", becomes(L::Init));
            }
            L::Refused => {}
        }
        let may_be_late = match p.life {
            L::Init | L::Starting | L::Lost => true,
            L::Migrating => fate == Fate::NeverReady,
            L::Up | L::Down | L::Refused | L::Stopping => false,
        };
        if !p.late && may_be_late {
            self.tick("takes too long", State { pod: Some(P { late: true, ..p }), ..*w });
        }
        self.players(w, p);
        self.agent(w);
        self.agent_dies(w);
    }

    /// The init container: restores a backup that a user requested, if it is good, and continues with the worlds that exist then.
    fn init(&mut self, w: &State, p: P) {
        if w.order_for_copy != Some(p.rev) || w.obeyed {
            return self.init_on(w, p);
        }
        self.init_on(&State { floor: 1, mixed: false, played: false, obeyed: true, ..*w }, p);
        if w.faults > 0 {
            self.note(
                "10 exempt: the copy that a person asked for is damaged (told, and another one can be asked for)",
            );
            // Until the user requests again, a lost pod changes nothing.
            let by_us = ByUs::Nothing;
            self.init_on(&State { faults: w.faults - 1, wish: Wish::Over, order_for_copy: None, by_us, ..*w }, p);
        }
    }

    /// Takes the offline backup, executes a restore request, refuses a world that cannot be opened.
    fn init_on(&mut self, w: &State, p: P) {
        let format = self.s.format[p.rev.index()];
        let mut to = *w;
        if format < w.floor || w.mixed {
            if let Some(copy) = self.restored(w, p.rev) {
                if w.played {
                    self.note("restored although somebody joined after the order (set aside, told)");
                }
                (to.floor, to.mixed, to.played) = (copy.format, false, false);
                (to.order, to.last) = (None, Some(p.rev));
                to.pod = Some(P { life: L::Starting, ..p });
            } else {
                let ours = w.by_us == ByUs::RollBack && Some(p.rev) == w.settled;
                let played = w.order.is_some_and(|order| order.unless_played) && w.played;
                if ours && played {
                    self.note(
                        "10 exempt: nobody could say who was on, and somebody was (not put back, a person decides)",
                    );
                } else if ours && !self.s.copies {
                    self.note("10 exempt: the world was moved while its pod was stopped, and there is no copy");
                } else {
                    self.must(!ours, "10 we went back to a revision that cannot open the world as it is now");
                }
                to.pod = Some(P { life: L::Refused, ..p });
            }
        } else {
            let every_start = self.s.without == Some(Rule::OneColdCopy);
            let another = w.last.is_some_and(|last| last != p.rev) && format > w.floor;
            if self.s.copies && (every_start || another) {
                (to.copy, to.played) = (Some(ColdCopy { format: w.floor, before: p.rev }), false);
            }
            to.last = Some(p.rev);
            to.pod = Some(P { life: L::Starting, ..p });
        }
        self.to(Kind::World, "init", to);
    }

    fn proof(&mut self, w: &State, p: P) {
        let fate = self.s.fate[p.rev.index()];
        let judged = |judged| State { pod: Some(P { judged, ..p }), ..*w };
        if p.judged == Judged::NotYet {
            let verdicts: &[Judged] = match (p.life, fate) {
                (L::Down, _) | (_, Fate::Bad | Fate::NeverReady) => &[Judged::Failed],
                (_, Fate::Good) => &[Judged::Passed],
                (_, Fate::Unreadable) => &[Judged::Unreadable],
                (_, Fate::Flaky) => &[Judged::Passed, Judged::Failed],
            };
            for verdict in verdicts {
                self.to(Kind::World, "judged", judged(*verdict));
            }
        } else if fate == Fate::Flaky && p.judged == Judged::Failed && Some(p.rev) != w.settled {
            self.to(Kind::World, "gets well after all", judged(Judged::Passed));
        }
    }

    fn players(&mut self, w: &State, p: P) {
        let opens_the_world_as_it_is = !w.mixed && self.s.format[p.rev.index()] == w.floor;
        let never_called_ready = p.life == L::Starting && w.agent != Agent::Answers && opens_the_world_as_it_is;
        if !w.players && (p.life == L::Up || never_called_ready) {
            let played = w.copy.is_some();
            let to = State { players: true, played, ..*w };
            // A server that was never Ready must first start, which takes longer than a decision is valid.
            if p.life == L::Up {
                self.to(Kind::World, "somebody joins", to);
            } else {
                self.tick("somebody joins", to);
            }
        }
        if self.s.opportunistic && !w.players && !w.empty && p.life == L::Up && w.agent == Agent::Answers {
            self.tick("nobody has been on for long", State { empty: true, ..*w });
        }
        if w.players {
            let to = State { players: false, ..*w };
            if p.life == L::Down {
                self.to(Kind::World, "thrown out", to);
            }
            self.to(Kind::Help, "everybody leaves", to);
        }
    }

    fn agent(&mut self, w: &State) {
        match w.agent {
            Agent::Answers if !self.s.agent_costs => {
                self.to(Kind::Fault, "agent falls silent", State { agent: Agent::Silent, ..*w });
            }
            Agent::Answers if w.faults > 0 => {
                let to = State { agent: Agent::Silent, faults: w.faults - 1, ..*w };
                self.to(Kind::Fault, "agent falls silent", to);
            }
            Agent::Answers => {}
            Agent::Silent => {
                self.tick("silent beyond patience", State { agent: Agent::SilentBeyondPatience, ..*w });
                self.to(Kind::Help, "agent answers again", State { agent: Agent::Answers, ..*w });
            }
            Agent::SilentBeyondPatience => {
                self.to(Kind::Help, "agent answers again", State { agent: Agent::Answers, ..*w });
            }
        }
    }

    /// The backup that the request to this revision names, unless players built on later changes.
    fn restored(&self, w: &State, to: Rev) -> Option<ColdCopy> {
        let order = w.order.filter(|order| order.to == to && !(order.unless_played && w.played))?;
        w.copy.filter(|copy| copy.before == order.failed && copy.format <= self.s.format[to.index()])
    }
}
