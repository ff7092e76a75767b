//! Pure. Suggests corrections for misspelt words.

/// The maximum length of a misspelt word, in bytes.
const MAX_WORD_LENGTH: usize = 200;

/// The candidates close to `word`, closest first. Empty if none is close.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    // Real words are at most half as long. Without the limit, a megabyte would be compared letter by letter.
    let candidates = (word.len() <= MAX_WORD_LENGTH).then_some(candidates).into_iter().flatten();
    let plain = |text: &str| -> String { folded_letters(text).collect() };
    let word = plain(word);
    // One error in every three letters: `updateStrateg` and `latset`, but not `auto` for `none`.
    let most = (word.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = candidates
        .map(|candidate| (strsim::osa_distance(&word, &plain(candidate)), candidate))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    near.sort_unstable();
    near.into_iter().map(|(_, candidate)| candidate)
}

/// A name in lower case without spaces, `-` and `_`, as names are compared.
pub fn folded_letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
        nearest(word, candidates.iter().copied()).next()
    }

    #[test]
    fn misspelt_word_finds_nearest_and_unrelated_word_no_match() {
        let strategies = ["latest", "auto", "pin", "build-pin"];
        assert_eq!(first("latset", &strategies), Some("latest"));
        assert_eq!(first("buildPin", &strategies), Some("build-pin"));
        assert_eq!(first("Auto", &strategies), Some("auto"));
        assert_eq!(first("ato", &strategies), Some("auto"), "one error in three letters is allowed");
        assert_eq!(first("newest", &strategies), None);
        assert_eq!(first("", &strategies), None);
        assert_eq!(first(&"a".repeat(MAX_WORD_LENGTH + 1), &[&"a".repeat(MAX_WORD_LENGTH)]), None);
    }

    #[test]
    fn misspelt_plugin_finds_nearest_and_unrelated_plugin_no_match() {
        let candidates = ["WorldEdit", "WorldGuard", "ViaVersion"];
        assert_eq!(first("Wordedit", &candidates), Some("WorldEdit"));
        assert_eq!(first("world-edit", &candidates), Some("WorldEdit"));
        assert_eq!(first("LuckPerms", &candidates), None);
    }

    #[test]
    fn suggestions_are_ordered_by_distance_then_name() {
        let candidates = ["Essentials", "Essential", "Essentialz"];
        assert_eq!(nearest("essentials", candidates).collect::<Vec<_>>(), ["Essentials", "Essential", "Essentialz"]);
    }
}
