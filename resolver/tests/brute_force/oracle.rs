//! Pure. Finds the best answer by exhaustive search, in the order of preference that `docs/concepts/solve.md` defines.

use std::collections::BTreeMap;

use resolver::model::catalog::{Project, Release};
use resolver::model::request::PaperRequest;

use super::rules::{ServerRules, age, in_order, is_running};

/// The outcome of a query, with versions and releases by name and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Chosen {
        minecraft: String,
        build: u32,
        /// Ids of the installed releases, sorted.
        releases: Vec<String>,
        /// Plugins that `latest` excludes, by project name, with the running version that is kept.
        left_behind: BTreeMap<String, Option<String>>,
    },
    NoSolution,
    Unknown,
}

/// The choices that the search has for one member.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum MemberChoice<'a> {
    /// It must be installed.
    Required,
    /// It may be absent.
    Optional,
    /// Strategy `latest` keeps this running release, listed or not.
    Retained(&'a Release),
    /// Exactly this release must be installed.
    Fixed(&'a Release),
}

type Set<'a> = Vec<Option<&'a Release>>;

/// The input of the search for one server, after strategy `latest` excluded the plugins that cannot be updated.
pub(crate) struct SearchInput<'a> {
    /// The Papers that its strategy allows, newest first.
    pub(crate) papers: Vec<usize>,
    /// The choices for each member.
    pub(crate) choices: Vec<MemberChoice<'a>>,
    /// Plugins that `latest` excludes, by project name, with the running version that is kept.
    pub(crate) left_behind: BTreeMap<String, Option<String>>,
    /// Whether an unrequested dependency may keep its running release, listed or not.
    may_keep_running: bool,
}

impl<'a> SearchInput<'a> {
    pub(crate) fn new(rules: &ServerRules<'a>) -> Self {
        let strategy = &rules.request.paper;
        let wanted = |paper: &usize| match strategy {
            PaperRequest::Auto | PaperRequest::Latest => true,
            PaperRequest::Pin { version } | PaperRequest::BuildPin { version, .. } => {
                rules.papers[*paper].minecraft == version
            }
        };
        let usable = (0..rules.papers.len()).rev().filter(|&paper| rules.papers[paper].build.is_some());
        let mut papers: Vec<usize> = usable.filter(wanted).collect();
        let choices = rules
            .members
            .iter()
            .map(|member| if member.is_required() { MemberChoice::Required } else { MemberChoice::Optional })
            .collect();
        let mut input = Self { papers: Vec::new(), choices, left_behind: BTreeMap::new(), may_keep_running: false };
        if *strategy == PaperRequest::Latest {
            papers.truncate(1);
            if let [newest] = papers[..]
                && input.find_set(rules, newest).is_none()
            {
                input.apply_latest(rules, newest);
            }
        }
        Self { papers, ..input }
    }

    /// Applies strategy `latest`: updates each plugin if possible, in the order of the Plugin objects. Otherwise keeps
    /// its running release, or else removes the plugin.
    fn apply_latest(&mut self, rules: &ServerRules<'a>, paper: usize) {
        let is_required = |at: &usize| self.choices[*at] == MemberChoice::Required;
        let required: Vec<usize> = (0..self.choices.len()).filter(is_required).collect();
        for &at in &required {
            self.choices[at] = MemberChoice::Optional;
        }
        self.may_keep_running = true;
        for &at in &required {
            self.choices[at] = MemberChoice::Required;
            if self.find_set(rules, paper).is_some() {
                continue;
            }
            let member = &rules.members[at];
            let staying = member.usable.iter().copied().find(|release| is_running(rules.request, release));
            let stays = staying.filter(|release| {
                self.choices[at] = MemberChoice::Retained(release);
                self.find_set(rules, paper).is_some()
            });
            if stays.is_none() {
                self.choices[at] = MemberChoice::Optional;
            }
            self.left_behind.insert(member.project.name.clone(), stays.map(|release| release.version.clone()));
        }
    }

    fn find_set(&self, rules: &ServerRules<'a>, paper: usize) -> Option<Set<'a>> {
        find_set(rules, paper, &self.choices, self.may_keep_running)
    }

    /// Whether a release of a member may be chosen on a Paper.
    pub(crate) fn is_allowed(&self, rules: &ServerRules<'a>, at: usize, release: &Release, paper: usize) -> bool {
        is_allowed(rules, (at, self.choices[at]), release, paper, self.may_keep_running)
    }
}

/// The best outcome, by exhaustive search.
pub(crate) fn best(rules: &ServerRules<'_>) -> Outcome {
    let input = SearchInput::new(rules);
    let found = input.papers.iter().find_map(|&paper| Some((paper, input.find_set(rules, paper)?)));
    found.map_or(Outcome::NoSolution, |(paper, version_set)| outcome(rules, paper, &version_set, input.left_behind))
}

/// Whether a complete version set for a Paper exists that contains these releases, by the indexes of their members.
pub(crate) fn is_solvable_with<'a>(
    rules: &ServerRules<'a>,
    paper: usize,
    fixed: &BTreeMap<usize, &'a Release>,
) -> bool {
    let choice_of = |(at, objects): (usize, bool)| match fixed.get(&at) {
        Some(fixed_release) => MemberChoice::Fixed(fixed_release),
        None if objects => MemberChoice::Required,
        None => MemberChoice::Optional,
    };
    let requested = rules.members.iter().map(|member| !member.objects.is_empty());
    find_set(rules, paper, &requested.enumerate().map(choice_of).collect::<Vec<_>>(), false).is_some()
}

/// The outcome of a version set.
pub(crate) fn outcome(
    rules: &ServerRules<'_>,
    paper: usize,
    version_set: &[Option<&Release>],
    left_behind: BTreeMap<String, Option<String>>,
) -> Outcome {
    let mut releases: Vec<String> = version_set.iter().flatten().map(|release| release.id.clone()).collect();
    releases.sort();
    let (minecraft, build) = (rules.papers[paper].minecraft.to_string(), rules.papers[paper].build.unwrap().number);
    Outcome::Chosen { minecraft, build, releases, left_behind }
}

/// The best complete version set: the first that a depth-first search in the order of preference finds.
///
/// With `may_keep_running`, an unrequested dependency may keep its running release, listed or not.
fn find_set<'a>(
    rules: &ServerRules<'a>,
    paper: usize,
    choices: &[MemberChoice<'a>],
    may_keep_running: bool,
) -> Option<Set<'a>> {
    let mut version_set = Vec::with_capacity(choices.len());
    extend(rules, paper, choices, may_keep_running, &mut version_set).then_some(version_set)
}

fn extend<'a>(
    rules: &ServerRules<'a>,
    paper: usize,
    choices: &[MemberChoice<'a>],
    may_keep_running: bool,
    version_set: &mut Set<'a>,
) -> bool {
    let at = version_set.len();
    if at == choices.len() {
        return true;
    }
    let absent = (choices[at] == MemberChoice::Optional).then_some(None);
    let on_paper = |release: &&Release| is_allowed(rules, (at, choices[at]), release, paper, may_keep_running);
    let newest_first = rules.members[at].usable.iter().rev().copied().filter(on_paper).map(Some);
    for choice in absent.into_iter().chain(newest_first) {
        version_set.push(choice);
        if is_consistent(rules, version_set) && extend(rules, paper, choices, may_keep_running, version_set) {
            return true;
        }
        version_set.pop();
    }
    false
}

fn is_allowed(
    rules: &ServerRules<'_>,
    (at, choice): (usize, MemberChoice<'_>),
    release: &Release,
    paper: usize,
    may_keep_running: bool,
) -> bool {
    let stays = may_keep_running && rules.members[at].objects.is_empty();
    match choice {
        _ if rules.is_refused(at, release, paper) => false,
        MemberChoice::Retained(fixed_release) => release.id == fixed_release.id,
        MemberChoice::Fixed(fixed_release) if release.id != fixed_release.id => false,
        MemberChoice::Required | MemberChoice::Optional | MemberChoice::Fixed(_) => {
            rules.meets_pin(at, release)
                && (rules.is_listed(at, release, paper) || stays && is_running(rules.request, release))
        }
    }
}

/// Whether the last release of a version set is compatible with the other releases.
fn is_consistent(rules: &ServerRules<'_>, version_set: &Set<'_>) -> bool {
    let last = version_set.len() - 1;
    let agrees = |dependent: usize, target: usize| {
        let Some(release) = version_set[dependent] else { return true };
        let member = &rules.members[dependent];
        let index = member.usable.iter().position(|usable| usable.id == release.id).unwrap();
        member.requirements[index].iter().filter(|requirement| requirement.target == target).all(|requirement| {
            match version_set[target] {
                None => requirement.or_absent,
                Some(installed) => requirement.one_of.contains(installed.id.as_str()),
            }
        })
    };
    (0..=last).all(|other| agrees(last, other) && agrees(other, last))
}

/// Whether a release of a project is older than another one, in the order of the releases. A delisted release is the
/// oldest.
pub(super) fn is_older(project: &Project, release: &Release, than: &Release) -> bool {
    let ordered = in_order(project.releases.iter());
    let position = |release: &Release| ordered.iter().position(|other| other.id == release.id);
    age(release) != age(than) && position(release) < position(than)
}
