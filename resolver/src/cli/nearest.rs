//! Pure. What somebody may have meant.

/// The longest text that can be a misspelt word, in bytes.
const LONGEST: usize = 200;

/// The candidate that `word` was probably meant to be; None when nothing is near.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No word of ours is half as long, and a megabyte would be compared letter by letter.
    if word.len() > LONGEST {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let word = plain(word);
    // One slip in every three letters: `updateStrateg` and `latset`, and not `auto` for `none`.
    let most = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&word, &plain(candidate)), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

/// `a`, `b` or `c`.
pub(super) fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_word_and_other_words_find_none() {
        let strategies = ["latest", "auto", "pin", "build-pin"];
        assert_eq!(nearest("latset", strategies), Some("latest"));
        assert_eq!(nearest("buildPin", strategies), Some("build-pin"));
        assert_eq!(nearest("Auto", strategies), Some("auto"));
        assert_eq!(nearest("ato", strategies), Some("auto"), "one slip in three letters");
        assert_eq!(nearest("newest", strategies), None);
        assert_eq!(nearest("", strategies), None);
    }

    #[test]
    fn words_are_listed_as_in_a_sentence() {
        assert_eq!(listed(["a"]), "`a`");
        assert_eq!(listed(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(listed([]), "");
    }
}
