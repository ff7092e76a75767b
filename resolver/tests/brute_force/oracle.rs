//! Pure. Finds the best answer by exhaustive search in the order that `docs/concepts/solve.md` defines.

use std::collections::BTreeMap;

use resolver::catalog::Release;
use resolver::request::PaperRequest;

use super::rules::{Book, runs};

/// The outcome of a query, by names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Chosen {
        minecraft: String,
        build: u32,
        /// Ids of the installed releases, sorted.
        releases: Vec<String>,
        /// Plugins that `latest` excludes, by project name, with the version that stays.
        unfollowed: BTreeMap<String, Option<String>>,
    },
    Nothing,
    Unknown,
}

/// The choices for one member.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Open<'a> {
    Must,
    May,
    Stays(&'a Release),
    Only(&'a Release),
}

type Set<'a> = Vec<Option<&'a Release>>;

/// The request of a server after strategy `latest` excluded plugins that cannot be updated.
pub(crate) struct Question<'a> {
    /// The Papers that its strategy allows, newest first.
    pub(crate) papers: Vec<usize>,
    /// For each member.
    pub(crate) open: Vec<Open<'a>>,
    /// Plugins that `latest` excludes, by project name, with the version that stays.
    pub(crate) unfollowed: BTreeMap<String, Option<String>>,
    /// Whether an unrequested dependency may keep its running release, listed or not.
    leniently: bool,
}

impl<'a> Question<'a> {
    pub(crate) fn of(book: &Book<'a>) -> Self {
        let strategy = &book.request.paper;
        let wanted = |paper: &usize| match strategy {
            PaperRequest::Auto | PaperRequest::Latest => true,
            PaperRequest::Pin { version } | PaperRequest::BuildPin { version, .. } => {
                book.papers[*paper].minecraft == version
            }
        };
        let usable = (0..book.papers.len()).rev().filter(|&paper| book.papers[paper].build.is_some());
        let mut papers: Vec<usize> = usable.filter(wanted).collect();
        let open = book.members.iter().map(|member| if member.must() { Open::Must } else { Open::May }).collect();
        let mut question = Self { papers: Vec::new(), open, unfollowed: BTreeMap::new(), leniently: false };
        if *strategy == PaperRequest::Latest {
            papers.truncate(1);
            if let [newest] = papers[..]
                && question.complete(book, newest).is_none()
            {
                question.follow(book, newest);
            }
        }
        Self { papers, ..question }
    }

    /// `latest`: in the order of the objects, each plugin is updated if possible. Otherwise its running release stays,
    /// or it is removed.
    fn follow(&mut self, book: &Book<'a>, paper: usize) {
        let asked: Vec<usize> = (0..self.open.len()).filter(|&at| self.open[at] == Open::Must).collect();
        for &at in &asked {
            self.open[at] = Open::May;
        }
        self.leniently = true;
        for &at in &asked {
            self.open[at] = Open::Must;
            if self.complete(book, paper).is_some() {
                continue;
            }
            let member = &book.members[at];
            let staying = member.usable.iter().copied().find(|release| runs(book.request, release));
            let stays = staying.filter(|release| {
                self.open[at] = Open::Stays(release);
                self.complete(book, paper).is_some()
            });
            if stays.is_none() {
                self.open[at] = Open::May;
            }
            self.unfollowed.insert(member.project.name.clone(), stays.map(|release| release.version.clone()));
        }
    }

    fn complete(&self, book: &Book<'a>, paper: usize) -> Option<Set<'a>> {
        complete(book, paper, &self.open, self.leniently)
    }

    /// Whether a release of a member may be chosen on a Paper.
    pub(crate) fn suits(&self, book: &Book<'a>, at: usize, release: &Release, paper: usize) -> bool {
        suits(book, (at, self.open[at]), release, paper, self.leniently)
    }
}

/// Searches exhaustively.
pub(crate) fn best(book: &Book<'_>) -> Outcome {
    let question = Question::of(book);
    let found = question.papers.iter().find_map(|&paper| Some((paper, question.complete(book, paper)?)));
    found.map_or(Outcome::Nothing, |(paper, set)| outcome(book, paper, &set, question.unfollowed))
}

/// Whether a complete version set for a Paper exists that contains these releases, by the places of their members.
pub(crate) fn goes_with<'a>(book: &Book<'a>, paper: usize, fixed: &BTreeMap<usize, &'a Release>) -> bool {
    let open = |(at, objects): (usize, bool)| match fixed.get(&at) {
        Some(only) => Open::Only(only),
        None if objects => Open::Must,
        None => Open::May,
    };
    let asked = book.members.iter().map(|member| !member.objects.is_empty());
    complete(book, paper, &asked.enumerate().map(open).collect::<Vec<_>>(), false).is_some()
}

/// The outcome of a version set.
pub(crate) fn outcome(
    book: &Book<'_>,
    paper: usize,
    set: &[Option<&Release>],
    unfollowed: BTreeMap<String, Option<String>>,
) -> Outcome {
    let mut releases: Vec<String> = set.iter().flatten().map(|release| release.id.clone()).collect();
    releases.sort();
    let (minecraft, build) = (book.papers[paper].minecraft.to_string(), book.papers[paper].build.unwrap().number);
    Outcome::Chosen { minecraft, build, releases, unfollowed }
}

/// The first complete version set, depth first in the order of preference, which is the best one.
///
/// With `leniently`, an unrequested dependency may keep its running release, listed or not.
fn complete<'a>(book: &Book<'a>, paper: usize, open: &[Open<'a>], leniently: bool) -> Option<Set<'a>> {
    let mut set = Vec::with_capacity(open.len());
    deeper(book, paper, open, leniently, &mut set).then_some(set)
}

fn deeper<'a>(book: &Book<'a>, paper: usize, open: &[Open<'a>], leniently: bool, set: &mut Set<'a>) -> bool {
    let at = set.len();
    if at == open.len() {
        return true;
    }
    let absent = (open[at] == Open::May).then_some(None);
    let on_paper = |release: &&Release| suits(book, (at, open[at]), release, paper, leniently);
    let newest_first = book.members[at].usable.iter().rev().copied().filter(on_paper).map(Some);
    for choice in absent.into_iter().chain(newest_first) {
        set.push(choice);
        if holds(book, set) && deeper(book, paper, open, leniently, set) {
            return true;
        }
        set.pop();
    }
    false
}

fn suits(book: &Book<'_>, (at, open): (usize, Open<'_>), release: &Release, paper: usize, leniently: bool) -> bool {
    let stays = leniently && book.members[at].objects.is_empty();
    match open {
        _ if book.refused(at, release, paper) => false,
        Open::Stays(only) => release.id == only.id,
        Open::Only(only) if release.id != only.id => false,
        Open::Must | Open::May | Open::Only(_) => {
            book.meets_pin(at, release) && (book.listed(at, release, paper) || stays && runs(book.request, release))
        }
    }
}

/// Whether the last release of a version set is compatible with those before it.
fn holds(book: &Book<'_>, set: &Set<'_>) -> bool {
    let last = set.len() - 1;
    let agrees = |asking: usize, asked: usize| {
        let Some(release) = set[asking] else { return true };
        let member = &book.members[asking];
        let place = member.usable.iter().position(|usable| usable.id == release.id).unwrap();
        member.asks[place].iter().filter(|ask| ask.of == asked).all(|ask| match set[asked] {
            None => ask.or_absent,
            Some(there) => ask.one_of.contains(there.id.as_str()),
        })
    };
    (0..=last).all(|other| agrees(last, other) && agrees(other, last))
}
