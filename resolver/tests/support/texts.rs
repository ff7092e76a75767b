//! Pure. Interprets texts of the catalog and the request, by the rules of `docs/concepts/solve.md`. For tests only.

use jiff::Timestamp;
use resolver::model::api_version::ApiVersion;
use resolver::model::catalog::ImageTag;
use resolver::model::version::Minecraft;

/// Whether a pattern matches a file name, apart from `.jar` and a version at its end. `*` and `?` match no part of a
/// version.
pub(crate) fn jar_pattern_matches(name: &str, file: &str) -> bool {
    // A version begins with a separator and a digit, or with a separator, a `v` and a digit.
    fn is_version(text: &[char]) -> bool {
        let [separator, rest @ ..] = text else { return false };
        let number = rest.strip_prefix(&['v']).unwrap_or(rest);
        "-_.+ ".contains(*separator) && number.first().is_some_and(char::is_ascii_digit)
    }
    fn glob_matches(name: &[char], text: &[char]) -> bool {
        match (name, text) {
            ([], []) => true,
            ([], _) => is_version(text),
            (['*' | '?', ..], _) if is_version(text) => *name == ['*'],
            (['*', after @ ..], []) => glob_matches(after, text),
            (['*', after @ ..], [_, rest @ ..]) => glob_matches(after, text) || glob_matches(name, rest),
            ([one, after @ ..], [first, rest @ ..]) => (*one == '?' || one == first) && glob_matches(after, rest),
            (_, []) => false,
        }
    }
    let lower = |text: &str| text.to_lowercase().chars().collect::<Vec<_>>();
    let (name, file) = (lower(name), lower(file));
    glob_matches(&name, file.strip_suffix(&['.', 'j', 'a', 'r']).unwrap_or(&file))
}

/// A comparable version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    core: Vec<Token>,
    is_final: bool,
    stage: Vec<Token>,
    build: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Token {
    Number(u64),
    Word(String),
}

fn tokens(text: &str) -> Vec<Token> {
    let parts = text.split(['.', '-', '_', '+']).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().map_or_else(|_| Token::Word(part.to_lowercase()), Token::Number)).collect()
}

impl Key {
    pub(crate) fn parse(version: &str) -> Self {
        let version = normalized(version);
        let (version, build) = version.split_once('+').unwrap_or((&version, ""));
        let (core, stage) = version.split_once('-').unwrap_or((version, ""));
        let mut core = tokens(core);
        while core.last() == Some(&Token::Number(0)) {
            core.pop();
        }
        let stage = if stage == "release" { "" } else { stage };
        Self { core, is_final: stage.is_empty(), stage: tokens(stage), build: tokens(build) }
    }

    /// See [`is_lower`].
    pub(crate) fn is_lower(&self, than: &Self) -> bool {
        let has_numbers = |key: &Self| key.core.iter().all(|token| matches!(token, Token::Number(_)));
        if !has_numbers(self) || !has_numbers(than) {
            return false;
        }
        if (&self.core, self.is_final) != (&than.core, than.is_final) {
            return (&self.core, self.is_final) < (&than.core, than.is_final);
        }
        let (left, right) =
            if self.stage == than.stage { (&self.build, &than.build) } else { (&self.stage, &than.stage) };
        let differs = left.iter().zip(right).find(|(a, b)| a != b);
        matches!(differs, Some((Token::Number(a), Token::Number(b))) if a < b)
    }
}

/// Whether the numbers of a version are lower. Without a number that decides, neither version is lower.
pub(crate) fn is_lower(version: &str, than: &str) -> bool {
    Key::parse(version).is_lower(&Key::parse(than))
}

/// Whether two versions begin with the same number.
pub(crate) fn are_of_one_line(a: &str, b: &str) -> bool {
    let line = |version: &str| match tokens(normalized(version).split(['-', '+']).next()?).first()? {
        Token::Number(number) => Some(*number),
        Token::Word(_) => None,
    };
    line(a).is_some() && line(a) == line(b)
}

/// `>=7.4, <7.5`: every condition must hold. A preview of exactly the upper end of `<` is not below it.
pub(crate) fn in_range(range: &str, version: &str) -> bool {
    let key = Key::parse(version);
    range.split(',').map(str::trim).all(|condition| {
        let letters = condition.find(|c: char| c.is_ascii_alphanumeric() || c == '*').unwrap();
        let (sign, end) = condition.split_at(letters);
        if end == "*" {
            return true;
        }
        if let Some(prefix) = end.strip_suffix(".x").or_else(|| end.strip_suffix(".*")) {
            let mut components = key.core.clone();
            let prefix = tokens(prefix);
            components.resize(components.len().max(prefix.len()), Token::Number(0));
            return components.starts_with(&prefix);
        }
        let end = Key::parse(end);
        match sign.trim() {
            ">=" => key >= end,
            ">" => key > end,
            "<=" => key <= end,
            "<" => key < end && !(end.is_final && !key.is_final && key.core == end.core),
            _ => key == end,
        }
    })
}

fn normalized(version: &str) -> String {
    let version = version.trim().to_lowercase();
    version.strip_prefix('v').map(str::to_owned).unwrap_or(version)
}

/// Whether a pin matches a release, ignoring case and a leading `v`.
pub(crate) fn pin_matches(pin: &str, version: &str) -> bool {
    normalized(pin) == normalized(version)
}

/// Whether a release is built for a snapshot of Minecraft.
pub(crate) fn is_for_snapshot(version: &str) -> bool {
    version.split(['-', '+', '.']).any(|part| {
        let letters: Vec<char> = part.chars().collect();
        matches!(letters.as_slice(), [a, b, 'w', c, d, 'a'..='z'] if [a, b, c, d].iter().all(|x| x.is_ascii_digit()))
    })
}

/// Whether the third number of `newer` is higher and the first two are equal.
pub(crate) fn is_patch_of(newer: &str, older: &str) -> bool {
    let numbers = |version: &str| {
        let version = normalized(version);
        let core = version.split(['-', '+']).next()?.split('.').map(|part| part.parse::<u32>().ok());
        let mut numbers = core.collect::<Option<Vec<u32>>>()?;
        if !(2..=3).contains(&numbers.len()) {
            return None;
        }
        numbers.resize(3, 0);
        Some((numbers[0], numbers[1], numbers[2]))
    };
    match (numbers(newer), numbers(older)) {
        (Some(newer), Some(older)) => (newer.0, newer.1) == (older.0, older.1) && newer.2 > older.2,
        _ => false,
    }
}

/// Whether a Paper loads a JAR that states this `api-version`, for the forms in the tests.
pub(crate) fn accepts_api_version(states: &ApiVersion, paper: &Minecraft) -> bool {
    let at = |text: &str| minecraft_order(&text.parse().unwrap());
    let (states, has, compares) = (states.to_string(), minecraft_order(paper), minecraft_order(paper) >= at("1.20.5"));
    if let Some(text) = states.strip_prefix("paper-plugin.yml ") {
        return at("1.19") <= at(text) && at(text) <= has && (compares || text == "1.19" || text == "1.20");
    }
    match states.as_str() {
        text if !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') => has < at("1.13"),
        text => at(text) <= has && (compares || has < at("1.13") || text != "1.2" && text.matches('.').count() == 1),
    }
}

/// Order of Minecraft versions: names without a scheme, then weekly snapshots, then numbers, each with previews before
/// their release.
pub(crate) fn minecraft_order(version: &Minecraft) -> (u8, Vec<u32>, u8, u32, String) {
    let text = version.as_str();
    let numbers = |text: &str| text.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u32>>>();
    if is_for_snapshot(text) && text.len() == 6 {
        let letter = u32::from(text.as_bytes()[5]);
        return (
            1,
            [&text[..2], &text[3..5]].map(|part| part.parse().unwrap()).into_iter().chain([letter]).collect(),
            0,
            0,
            String::new(),
        );
    }
    let (base, before) = text.split_once(['-', ' ']).unwrap_or((text, "release"));
    let word: String = before.chars().take_while(|c| !c.is_ascii_digit()).collect();
    let word = word.trim_end_matches(['-', ' ', '.']).to_ascii_lowercase();
    let stage =
        ["snapshot", "pre", "rc", "release"].iter().position(|stage_name| word.replace("-release", "") == *stage_name);
    match (numbers(base), stage) {
        (Some(mut parts), Some(stage)) if (2..=3).contains(&parts.len()) => {
            parts.resize(3, 0);
            let count = before.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
            (2, parts, u8::try_from(stage).unwrap(), count, String::new())
        }
        _ => (0, Vec::new(), 0, 0, text.to_owned()),
    }
}

/// Pairs of hotfix siblings, as in `docs/concepts/solve.md`.
const SIBLINGS: [[&str; 2]; 12] = [
    ["1.16.4", "1.16.5"],
    ["1.18", "1.18.1"],
    ["1.19.1", "1.19.2"],
    ["1.20", "1.20.1"],
    ["1.20.3", "1.20.4"],
    ["1.20.5", "1.20.6"],
    ["1.21", "1.21.1"],
    ["1.21.2", "1.21.3"],
    ["1.21.7", "1.21.8"],
    ["1.21.9", "1.21.10"],
    ["26.1", "26.1.1"],
    ["26.1.1", "26.1.2"],
];

/// The hotfix siblings of a version, which have the same protocol.
pub(crate) fn siblings(version: &Minecraft) -> Vec<&'static str> {
    let pairs = SIBLINGS.iter().filter(|pair| pair.contains(&version.as_str()));
    pairs.flatten().copied().filter(|other| *other != version.as_str()).collect()
}

/// `1.21.9` for `1.21.10`, `26.1` for `26.1.1`.
pub(crate) fn patch_before(version: &Minecraft) -> Option<String> {
    let numbers: Vec<u32> = version.as_str().split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    match numbers.as_slice() {
        [a, b, 1] => Some(format!("{a}.{b}")),
        [a, b, c] if *c > 1 => Some(format!("{a}.{b}.{}", c - 1)),
        _ => None,
    }
}

/// Patterns: `1.21.4`, `1.21.x`, `1.21.*`, `*`.
pub(crate) fn pattern_matches(pattern: &str, version: &Minecraft) -> bool {
    if pattern == "*" {
        return version.is_release();
    }
    match pattern.strip_suffix(".x").or_else(|| pattern.strip_suffix(".*")) {
        Some(prefix) => {
            version.is_release() && (version.as_str() == prefix || version.as_str().starts_with(&format!("{prefix}.")))
        }
        None => version.as_str() == pattern,
    }
}

/// `21` of `itzg/minecraft-server:2026.8.1-java21`.
pub(crate) fn java_in(image: &str) -> Option<u32> {
    image.split('@').next()?.split_once("-java")?.1.parse().ok()
}

/// The Java version in the name of an image, at any position of the tag.
pub(crate) fn java_in_tag(image: &str) -> Option<u32> {
    let (_, tag) = image.split('@').next()?.rsplit('/').next()?.split_once(':')?;
    tag.split('-').find_map(|part| part.strip_prefix("java"))?.parse().ok()
}

/// `1.21.10` and 130 of `lexfrei/papermc:1.21.10-130`.
pub(crate) fn bundled_paper(image: &str) -> Option<(&str, u32)> {
    let tag = image.split('@').next()?.split(':').next_back()?;
    let (minecraft, build) = tag.split_once('-')?;
    Some((minecraft, build.parse().ok()?))
}

/// The newest image with this Java, else with the next higher one.
pub(crate) fn newest_image(images: &[ImageTag], java: u32, now: Timestamp) -> Option<String> {
    let available = images.iter().filter(|image| image.pushed <= now);
    let with_java = available.filter_map(|image| Some((java_in(&image.tag)?, image))).filter(|(has, _)| *has >= java);
    let release = |image: &ImageTag| Key::parse(image.tag.split_once("-java").unwrap().0);
    with_java
        .max_by(|(a, x), (b, y)| b.cmp(a).then_with(|| release(x).cmp(&release(y))).then_with(|| y.tag.cmp(&x.tag)))
        .map(|(_, image)| format!("{}:{}@{}", image.repository, image.tag, image.digest))
}

/// The built-in groups of plugins, as in `docs/concepts/solve.md`, by name without case, spaces and dashes.
const PLUGIN_GROUPS: [&str; 4] = [
    "viaversion viabackwards viarewind",
    "essentialsx essentialsxantibuild essentialsxchat essentialsxdiscord essentialsxdiscordlink essentialsxgeoip \
     essentialsxprotect essentialsxspawn essentialsxxmpp",
    "worldedit worldguard",
    "geyser floodgate",
];

/// Whether the plugins with these names are in one built-in group.
pub(crate) fn are_grouped(a: &str, b: &str) -> bool {
    let has = |group: &str, name: &str| {
        let name = name.to_lowercase().replace([' ', '-', '_'], "");
        group.split_whitespace().any(|member| member == name)
    };
    PLUGIN_GROUPS.iter().any(|group| has(group, a) && has(group, b))
}
