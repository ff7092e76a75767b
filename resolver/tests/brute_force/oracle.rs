//! Pure. Finds the best answer by exhaustive search in the order that `docs/concepts/solve.md` defines.

use std::collections::BTreeMap;

use resolver::model::catalog::Release;
use resolver::model::request::PaperRequest;

use super::rules::{Book, is_running};

/// The outcome of a query, by names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Chosen {
        minecraft: String,
        build: u32,
        /// Ids of the installed releases, sorted.
        releases: Vec<String>,
        /// Plugins that `latest` excludes, by project name, with the version that stays.
        left_behind: BTreeMap<String, Option<String>>,
    },
    NoSolution,
    Unknown,
}

/// The choices for one member.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Open<'a> {
    Required,
    Optional,
    Retained(&'a Release),
    Fixed(&'a Release),
}

type Set<'a> = Vec<Option<&'a Release>>;

/// The request of a server after strategy `latest` excluded plugins that cannot be updated.
pub(crate) struct Question<'a> {
    /// The Papers that its strategy allows, newest first.
    pub(crate) papers: Vec<usize>,
    /// For each member.
    pub(crate) choices: Vec<Open<'a>>,
    /// Plugins that `latest` excludes, by project name, with the version that stays.
    pub(crate) left_behind: BTreeMap<String, Option<String>>,
    /// Whether an unrequested dependency may keep its running release, listed or not.
    may_keep_running: bool,
}

impl<'a> Question<'a> {
    pub(crate) fn new(book: &Book<'a>) -> Self {
        let strategy = &book.request.paper;
        let wanted = |paper: &usize| match strategy {
            PaperRequest::Auto | PaperRequest::Latest => true,
            PaperRequest::Pin { version } | PaperRequest::BuildPin { version, .. } => {
                book.papers[*paper].minecraft == version
            }
        };
        let usable = (0..book.papers.len()).rev().filter(|&paper| book.papers[paper].build.is_some());
        let mut papers: Vec<usize> = usable.filter(wanted).collect();
        let choices = book
            .members
            .iter()
            .map(|member| if member.is_required() { Open::Required } else { Open::Optional })
            .collect();
        let mut question = Self { papers: Vec::new(), choices, left_behind: BTreeMap::new(), may_keep_running: false };
        if *strategy == PaperRequest::Latest {
            papers.truncate(1);
            if let [newest] = papers[..]
                && question.find_set(book, newest).is_none()
            {
                question.apply_latest(book, newest);
            }
        }
        Self { papers, ..question }
    }

    /// `latest`: in the order of the objects, each plugin is updated if possible. Otherwise its running release stays,
    /// or it is removed.
    fn apply_latest(&mut self, book: &Book<'a>, paper: usize) {
        let required: Vec<usize> = (0..self.choices.len()).filter(|&at| self.choices[at] == Open::Required).collect();
        for &at in &required {
            self.choices[at] = Open::Optional;
        }
        self.may_keep_running = true;
        for &at in &required {
            self.choices[at] = Open::Required;
            if self.find_set(book, paper).is_some() {
                continue;
            }
            let member = &book.members[at];
            let staying = member.usable.iter().copied().find(|release| is_running(book.request, release));
            let stays = staying.filter(|release| {
                self.choices[at] = Open::Retained(release);
                self.find_set(book, paper).is_some()
            });
            if stays.is_none() {
                self.choices[at] = Open::Optional;
            }
            self.left_behind.insert(member.project.name.clone(), stays.map(|release| release.version.clone()));
        }
    }

    fn find_set(&self, book: &Book<'a>, paper: usize) -> Option<Set<'a>> {
        find_set(book, paper, &self.choices, self.may_keep_running)
    }

    /// Whether a release of a member may be chosen on a Paper.
    pub(crate) fn is_allowed(&self, book: &Book<'a>, at: usize, release: &Release, paper: usize) -> bool {
        is_allowed(book, (at, self.choices[at]), release, paper, self.may_keep_running)
    }
}

/// Searches exhaustively.
pub(crate) fn best(book: &Book<'_>) -> Outcome {
    let question = Question::new(book);
    let found = question.papers.iter().find_map(|&paper| Some((paper, question.find_set(book, paper)?)));
    found.map_or(Outcome::NoSolution, |(paper, version_set)| outcome(book, paper, &version_set, question.left_behind))
}

/// Whether a complete version set for a Paper exists that contains these releases, by the places of their members.
pub(crate) fn is_solvable_with<'a>(book: &Book<'a>, paper: usize, fixed: &BTreeMap<usize, &'a Release>) -> bool {
    let choice_of = |(at, objects): (usize, bool)| match fixed.get(&at) {
        Some(fixed_release) => Open::Fixed(fixed_release),
        None if objects => Open::Required,
        None => Open::Optional,
    };
    let requested = book.members.iter().map(|member| !member.objects.is_empty());
    find_set(book, paper, &requested.enumerate().map(choice_of).collect::<Vec<_>>(), false).is_some()
}

/// The outcome of a version set.
pub(crate) fn outcome(
    book: &Book<'_>,
    paper: usize,
    version_set: &[Option<&Release>],
    left_behind: BTreeMap<String, Option<String>>,
) -> Outcome {
    let mut releases: Vec<String> = version_set.iter().flatten().map(|release| release.id.clone()).collect();
    releases.sort();
    let (minecraft, build) = (book.papers[paper].minecraft.to_string(), book.papers[paper].build.unwrap().number);
    Outcome::Chosen { minecraft, build, releases, left_behind }
}

/// The first complete version set, depth first in the order of preference, which is the best one.
///
/// With `may_keep_running`, an unrequested dependency may keep its running release, listed or not.
fn find_set<'a>(book: &Book<'a>, paper: usize, choices: &[Open<'a>], may_keep_running: bool) -> Option<Set<'a>> {
    let mut version_set = Vec::with_capacity(choices.len());
    extend(book, paper, choices, may_keep_running, &mut version_set).then_some(version_set)
}

fn extend<'a>(
    book: &Book<'a>,
    paper: usize,
    choices: &[Open<'a>],
    may_keep_running: bool,
    version_set: &mut Set<'a>,
) -> bool {
    let at = version_set.len();
    if at == choices.len() {
        return true;
    }
    let absent = (choices[at] == Open::Optional).then_some(None);
    let on_paper = |release: &&Release| is_allowed(book, (at, choices[at]), release, paper, may_keep_running);
    let newest_first = book.members[at].usable.iter().rev().copied().filter(on_paper).map(Some);
    for choice in absent.into_iter().chain(newest_first) {
        version_set.push(choice);
        if is_consistent(book, version_set) && extend(book, paper, choices, may_keep_running, version_set) {
            return true;
        }
        version_set.pop();
    }
    false
}

fn is_allowed(
    book: &Book<'_>,
    (at, choice): (usize, Open<'_>),
    release: &Release,
    paper: usize,
    may_keep_running: bool,
) -> bool {
    let stays = may_keep_running && book.members[at].objects.is_empty();
    match choice {
        _ if book.is_refused(at, release, paper) => false,
        Open::Retained(fixed_release) => release.id == fixed_release.id,
        Open::Fixed(fixed_release) if release.id != fixed_release.id => false,
        Open::Required | Open::Optional | Open::Fixed(_) => {
            book.meets_pin(at, release)
                && (book.is_listed(at, release, paper) || stays && is_running(book.request, release))
        }
    }
}

/// Whether the last release of a version set is compatible with those before it.
fn is_consistent(book: &Book<'_>, version_set: &Set<'_>) -> bool {
    let last = version_set.len() - 1;
    let agrees = |dependent: usize, target: usize| {
        let Some(release) = version_set[dependent] else { return true };
        let member = &book.members[dependent];
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
