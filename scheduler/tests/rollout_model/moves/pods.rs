//! Pure. Models kubelet, init container, server, agent and players.

use super::{Kind, Moves};
use crate::backups::{OfflineBackup, RestoreChoice};
use crate::state::{Agent, ByUs, Judged, L, P, Rev, Rule, SetBehaviour, State};

impl Moves<'_> {
    pub(super) fn pod(&mut self, w: &State) {
        let Some(p) = w.pod else { return };
        let format = self.s.format[p.rev.index()];
        let behaviour = self.s.behaviour[p.rev.index()];
        let becomes = |life| State { pod: Some(P { phase: life, ..p }), ..*w };
        match p.phase {
            L::Stopping | L::Lost => {
                let mut to = *w;
                to.remove_pod();
                if p.phase == L::Stopping {
                    self.add(Kind::Environment, "stopped", to);
                } else {
                    self.add(Kind::Help, "an admin releases the lost node", to);
                }
            }
            // The controller replaces it within moments.
            L::Pending if w.open && p.rev != w.template => {}
            // Until its process can change the worlds, more time passes than a decision is valid.
            L::Pending => self.tick("the cluster runs the pod", becomes(L::Init)),
            L::Init => self.init(w, p),
            L::Starting if w.mixed => {}
            L::Starting if format > w.floor => {
                let to = State { mixed: true, ..becomes(L::Migrating) };
                self.add(Kind::Environment, "begins to convert the world", to);
            }
            L::Starting => {
                self.check(format >= w.floor, "6 a Minecraft below the floor is started");
                if behaviour != SetBehaviour::NeverReady {
                    // readyReplicas is part of the StatefulSet's status, so a decision about a "never Ready" pod is refused now.
                    let mut to = becomes(L::Up);
                    to.bump_resource_version();
                    self.add(Kind::Environment, "ready", to);
                }
            }
            L::Migrating => {
                let to = State { mixed: false, floor: format, ..becomes(L::Starting) };
                self.add(Kind::Environment, "world converted", to);
            }
            L::Up | L::Down => {
                self.verify(w, p);
                if p.phase == L::Down {
                    let mut to = becomes(L::Up);
                    to.bump_resource_version();
                    self.add(Kind::Environment, "restarts in place", to);
                }
            }
            // The kubelet retries in any case. The model includes only retries that change the answer.
            L::Refused if w.user_restore_for == Some(p.rev) && !w.user_restore_done => {
                self.add(Kind::Environment, "the init container is tried again", becomes(L::Init));
            }
            L::Refused => {}
        }
        let may_be_late = match p.phase {
            L::Init | L::Starting | L::Lost => true,
            L::Migrating => behaviour == SetBehaviour::NeverReady,
            L::Pending | L::Up | L::Down | L::Refused | L::Stopping => false,
        };
        if !p.late && may_be_late {
            self.tick("takes too long", State { pod: Some(P { late: true, ..p }), ..*w });
        }
        self.players(w, p);
        self.agent(w);
        self.agent_restarts(w);
    }

    /// The init container: restores a backup that a user requested, if it is good, and continues with the worlds that exist then.
    fn init(&mut self, w: &State, p: P) {
        if w.user_restore_for != Some(p.rev) || w.user_restore_done {
            return self.run_init(w, p);
        }
        self.run_init(&State { floor: 1, mixed: false, has_played: false, user_restore_done: true, ..*w }, p);
        if w.faults > 0 {
            self.record_event("10 exempt: the backup that a user chose is damaged (reported)");
            // Until the user requests again, a lost pod changes nothing.
            self.run_init(
                &State {
                    faults: w.faults - 1,
                    user_request: RestoreChoice::Over,
                    user_restore_for: None,
                    by_operator: ByUs::Nothing,
                    ..*w
                },
                p,
            );
        }
    }

    /// Takes the offline backup, executes a restore request, refuses a world that cannot be opened.
    fn run_init(&mut self, w: &State, p: P) {
        let format = self.s.format[p.rev.index()];
        let mut to = *w;
        if format < w.floor || w.mixed {
            if let Some(backup) = self.restorable(w, p.rev) {
                if w.has_played {
                    self.record_event("restored although a player joined after the request (reported)");
                }
                (to.floor, to.mixed, to.has_played) = (backup.format, false, false);
                (to.restore_request, to.last) = (None, Some(p.rev));
                to.pod = Some(P { phase: L::Starting, ..p });
            } else {
                let by_operator = w.by_operator == ByUs::RollBack && Some(p.rev) == w.stable;
                let played =
                    w.restore_request.is_some_and(|restore_request| restore_request.unless_played) && w.has_played;
                if by_operator && played {
                    self.record_event(
                        "10 exempt: the player count was unknown, and players were online (an admin decides)",
                    );
                } else if by_operator && !self.s.backups {
                    self.record_event("10 exempt: the world was converted while its pod stopped, and no backup exists");
                } else {
                    self.check(!by_operator, "10 rolled back to a revision that cannot open the world");
                }
                to.pod = Some(P { phase: L::Refused, ..p });
            }
        } else {
            let every_start = self.s.without == Some(Rule::OneOfflineBackup);
            let another = w.last.is_some_and(|last| last != p.rev) && format > w.floor;
            if self.s.backups && (every_start || another) {
                (to.backup, to.has_played) = (Some(OfflineBackup { format: w.floor, before: p.rev }), false);
            }
            to.last = Some(p.rev);
            to.pod = Some(P { phase: L::Starting, ..p });
        }
        self.add(Kind::Environment, "init", to);
    }

    fn verify(&mut self, w: &State, p: P) {
        let behaviour = self.s.behaviour[p.rev.index()];
        let verification = |verification| State { pod: Some(P { verification, ..p }), ..*w };
        if p.verification == Judged::Pending {
            let results: &[Judged] = match (p.phase, behaviour) {
                (L::Down, _) | (_, SetBehaviour::Bad | SetBehaviour::NeverReady) => &[Judged::Failed],
                (_, SetBehaviour::Good) => &[Judged::Passed],
                (_, SetBehaviour::Unreadable) => &[Judged::Unreadable],
                (_, SetBehaviour::Flaky) => &[Judged::Passed, Judged::Failed],
            };
            for result in results {
                self.add(Kind::Environment, "the verification ends", verification(*result));
            }
        } else if behaviour == SetBehaviour::Flaky && p.verification == Judged::Failed && Some(p.rev) != w.stable {
            self.add(Kind::Environment, "the verification passes later", verification(Judged::Passed));
        }
    }

    fn players(&mut self, w: &State, p: P) {
        let opens_world_unchanged = !w.mixed && self.s.format[p.rev.index()] == w.floor;
        let is_never_ready = p.phase == L::Starting && w.agent != Agent::Answers && opens_world_unchanged;
        if !w.players && (p.phase == L::Up || is_never_ready) {
            let played = w.backup.is_some();
            let to = State { players: true, has_played: played, ..*w };
            // A server that was never Ready must first start, which takes longer than a decision is valid.
            if p.phase == L::Up {
                self.add(Kind::Environment, "a player joins", to);
            } else {
                self.tick("a player joins", to);
            }
        }
        if self.s.opportunistic && !w.players && !w.empty && p.phase == L::Up && w.agent == Agent::Answers {
            self.tick("the server has been empty for long", State { empty: true, ..*w });
        }
        if w.players {
            let to = State { players: false, ..*w };
            if p.phase == L::Down {
                self.add(Kind::Environment, "players are disconnected", to);
            }
            self.add(Kind::Help, "all players leave", to);
        }
    }

    fn agent(&mut self, w: &State) {
        match w.agent {
            Agent::Answers if !self.s.agent_costs => {
                self.add(Kind::Fault, "agent becomes unreachable", State { agent: Agent::Silent, ..*w });
            }
            Agent::Answers if w.faults > 0 => {
                let to = State { agent: Agent::Silent, faults: w.faults - 1, ..*w };
                self.add(Kind::Fault, "agent becomes unreachable", to);
            }
            Agent::Answers => {}
            Agent::Silent => {
                self.tick("unreachable beyond the timeout", State { agent: Agent::SilentBeyondTimeout, ..*w });
                self.add(Kind::Help, "agent answers again", State { agent: Agent::Answers, ..*w });
            }
            Agent::SilentBeyondTimeout => {
                self.add(Kind::Help, "agent answers again", State { agent: Agent::Answers, ..*w });
            }
        }
    }

    /// The backup that the request to this revision names, unless players built on later changes.
    fn restorable(&self, w: &State, to: Rev) -> Option<OfflineBackup> {
        let restore_request = w
            .restore_request
            .filter(|restore_request| restore_request.to == to && !(restore_request.unless_played && w.has_played))?;
        w.backup.filter(|backup| backup.before == restore_request.failed && backup.format <= self.s.format[to.index()])
    }
}
