//! Pure. Matches patterns over the file names of a release, as in `spec.source.jars`.

/// Limit of patterns of one Plugin, equal to the schema.
pub const MAX_PATTERNS: usize = 16;
/// Limit of characters of a pattern, equal to the schema.
pub const MAX_LENGTH: usize = 64;

/// Whether a pattern matches a file. It is compared with the file's name without version and `.jar`,
/// case-insensitively.
///
/// `EssentialsXChat` matches `EssentialsXChat-2.21.0.jar` and `EssentialsXChat.jar`, but not
/// `EssentialsXChatExtra.jar`. `*` stands for any characters and `?` for one. They do not match a part of the version,
/// which begins at the first number.
pub fn matches(pattern: &str, file_name: &str) -> bool {
    let name: Vec<char> = without_jar(file_name).to_lowercase().chars().collect();
    let pattern: Vec<char> = pattern.to_lowercase().chars().collect();
    let plain = !pattern.iter().any(|c| matches!(c, '*' | '?'));
    let mut ends = possible_ends(&name);
    ends.next().is_some_and(|end| is_full_match(&pattern, &name[..end]))
        || plain && ends.any(|end| name[..end] == pattern)
}

/// A file's name without version and `.jar`, to write as a pattern. Releases of one project usually share it.
pub fn stem(file_name: &str) -> String {
    let name: Vec<char> = without_jar(file_name).chars().collect();
    possible_ends(&name).next().map_or_else(String::new, |end| name[..end].iter().collect())
}

/// The error in a pattern, and how to fix it. `None` if the pattern is valid.
pub fn pattern_error(pattern: &str) -> Option<(&'static str, &'static str)> {
    const FIX: &str = "write a file name without version and `.jar`, such as `EssentialsXChat` or `*Chat`";
    if pattern.is_empty() {
        return Some(("is empty", FIX));
    }
    if pattern.chars().count() > MAX_LENGTH {
        return Some(("is longer than 64 characters", FIX));
    }
    if pattern.to_ascii_lowercase().ends_with(".jar") {
        return Some(("ends in `.jar`", "leave out the ending and the version: the next release has another version"));
    }
    if pattern.contains(|c: char| c == '/' || c == '\\' || c.is_control()) || pattern.trim() != pattern {
        return Some(("is not a file name", FIX));
    }
    None
}

/// Whether a file's name ends in `.jar`, in upper or lower case. Paper loads no other file.
pub fn is_jar(file_name: &str) -> bool {
    without_jar(file_name).len() < file_name.len()
}

/// A file's name without its version, with its ending: `Claims.zip`.
pub(crate) fn without_version(file_name: &str) -> String {
    file_name.rsplit_once('.').map_or_else(|| file_name.to_owned(), |(name, ending)| format!("{}.{ending}", stem(name)))
}

fn without_jar(name: &str) -> &str {
    match name.len().checked_sub(4).filter(|&at| name.is_char_boundary(at)) {
        Some(at) if name[at..].eq_ignore_ascii_case(".jar") => &name[..at],
        Some(_) | None => name,
    }
}

/// The possible ends of the name without version, shortest first: before a separator and a digit (or `v` and a digit),
/// and at the end.
fn possible_ends(name: &[char]) -> impl Iterator<Item = usize> {
    let version = |at: usize| {
        let [separator, rest @ ..] = &name[at..] else { return false };
        let number = rest.strip_prefix(&['v']).or(rest.strip_prefix(&['V'])).unwrap_or(rest);
        matches!(separator, '-' | '_' | '.' | '+' | ' ') && number.first().is_some_and(char::is_ascii_digit)
    };
    (1..name.len()).filter(move |&at| version(at)).chain([name.len()])
}

/// Whether a pattern matches a whole text. It only backtracks to the last `*`, so its time is at most the product of
/// the lengths: names are untrusted.
fn is_full_match(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            Some(_) | None => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                (p, t) = (at + 1, from + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jar_pattern_matches_only_its_file_in_every_version() {
        for (pattern, file) in [
            ("EssentialsXChat", "EssentialsXChat-2.21.0.jar"),
            ("EssentialsXChat", "EssentialsXChat.jar"),
            ("essentialsxchat", "EssentialsXChat-2.22.0-dev+12-abc.JAR"),
            ("worldedit-bukkit", "worldedit-bukkit-7.3.9.jar"),
            ("Plugin", "Plugin_v2.jar"),
            ("Via-1.21", "Via-1.21-5.0.jar"),
            ("DiscordSRV-Build", "DiscordSRV-Build-1.26.1.jar"),
            ("DiscordSRV*", "DiscordSRV-Build-1.26.1.jar"),
            ("*Chat", "EssentialsXChat-2.21.0.jar"),
            ("Essentials?Chat", "EssentialsXChat-2.21.0.jar"),
            ("*", "anything at all.jar"),
        ] {
            assert!(matches(pattern, file), "{pattern} {file}");
        }
        for (pattern, file) in [
            ("EssentialsX", "EssentialsXChat-2.21.0.jar"),
            ("EssentialsXChat", "EssentialsX-2.21.0.jar"),
            ("DiscordSRV", "DiscordSRV-Build-1.26.1.jar"),
            ("EssentialsX?", "EssentialsX-2.21.0.jar"),
            ("EssentialsX?*", "EssentialsX-2.21.0.jar"),
            ("Chat", "EssentialsXChat-2.21.0.jar"),
            ("", "a.jar"),
            ("a", ""),
        ] {
            assert!(!matches(pattern, file), "{pattern} {file}");
        }
    }

    #[test]
    fn jar_stem_is_pattern_for_its_file() {
        for (file, wanted) in [
            ("EssentialsXChat-2.21.0.jar", "EssentialsXChat"),
            ("DiscordSRV-Build-1.26.1.jar", "DiscordSRV-Build"),
            ("Plugin-v2.jar", "Plugin"),
            ("plain.jar", "plain"),
            ("1.2.3.jar", "1"),
            ("", ""),
        ] {
            assert_eq!(stem(file), wanted);
            assert!(file.is_empty() || matches(wanted, file), "{file}");
        }
    }

    #[test]
    fn only_names_that_end_in_jar_are_jars() {
        for (file, jar, plain) in [
            ("Claims-1.0.jar", true, "Claims.jar"),
            ("Claims.JAR", true, "Claims.JAR"),
            ("Claims-1.0.zip", false, "Claims.zip"),
            ("Claims-1.0.jar.asc", false, "Claims.asc"),
            ("jar", false, "jar"),
            ("", false, ""),
        ] {
            assert_eq!((is_jar(file), without_version(file).as_str()), (jar, plain), "{file}");
        }
    }

    #[test]
    fn impossible_jar_pattern_is_refused() {
        for good in ["EssentialsX", "*", "worldedit-bukkit", "My Plugin"] {
            assert_eq!(pattern_error(good), None, "{good}");
        }
        for bad in ["", "EssentialsX.jar", "a/b", " a", "a\n", &"a".repeat(65)] {
            assert!(pattern_error(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn jar_pattern_with_many_stars_matches_quickly() {
        let name = "a".repeat(5_000);
        assert!(!matches(&"*a".repeat(31).chars().chain(['b']).collect::<String>(), &name));
    }
}
