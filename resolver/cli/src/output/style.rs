//! Pure. Formats text for a terminal: bold headings, and long lines that continue below their own column.
//!
//! Without both, the text is the same word for word. Color never carries information.

use std::fmt::Write as _;

use anstyle::Style;

/// The smallest width for wrapping. Below it, every line would be broken into pieces.
const MIN_WIDTH: usize = 40;

/// The text with its headings in bold if `color` is set, and wrapped at `width`, if there is one.
pub(crate) fn styled(text: &str, color: bool, width: Option<usize>) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut styled = String::new();
    for (at, line) in lines.iter().enumerate() {
        let rows = match width {
            Some(width) if width >= MIN_WIDTH => wrap(line, width),
            Some(_) | None => vec![(*line).to_owned()],
        };
        let is_heading = color && is_heading(&lines, at);
        for row in rows {
            if is_heading {
                let bold = Style::new().bold();
                writeln!(styled, "{bold}{row}{bold:#}").expect("writing to a String cannot fail");
            } else {
                styled.push_str(&row);
                styled.push('\n');
            }
        }
    }
    if !text.ends_with('\n') {
        styled.pop();
    }
    styled
}

/// Whether the line is a heading: the first line of an answer, or a line above an indented one.
fn is_heading(lines: &[&str], at: usize) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let line = lines[at];
    let is_first = at == 0 || lines[at - 1].is_empty();
    !line.is_empty()
        && indent(line) == 0
        && (at == 0 || (is_first && lines.get(at + 1).is_some_and(|next| indent(next) > 0)))
}

/// Wraps a line to rows of at most `width`, at spaces. A longer word stays whole.
fn wrap(line: &str, width: usize) -> Vec<String> {
    // Text to copy into a manifest is not wrapped. The terminal breaks it without changing it.
    if line.chars().count() <= width || line.contains(": {") {
        return vec![line.to_owned()];
    }
    let hanging = last_column(line, width);
    let mut rows = Vec::new();
    let mut row = String::new();
    for word in pieces(line, hanging) {
        let is_empty = row.trim().is_empty();
        if !is_empty && row.chars().count() + 1 + word.chars().count() > width {
            rows.push(std::mem::take(&mut row));
            row = " ".repeat(hanging) + word;
        } else if row.is_empty() {
            word.clone_into(&mut row);
        } else {
            row.push(' ');
            row.push_str(word);
        }
    }
    rows.push(row);
    rows
}

/// The start of the last column of a line, where the further rows begin. The indent if that column is too far to the
/// right.
fn last_column(line: &str, width: usize) -> usize {
    let indent = line.chars().take_while(|letter| *letter == ' ').count();
    let last_gap = line.rfind("  ").map_or(0, |at| line[..at + 2].chars().count());
    if last_gap > indent && last_gap <= width / 2 { last_gap } else { indent }
}

/// The first `hanging` letters with the following word, unchanged. Then word by word.
fn pieces(line: &str, hanging: usize) -> Vec<&str> {
    let column = line.char_indices().nth(hanging).map_or(line.len(), |(at, _)| at);
    let first = line[column..].find(' ').map_or(line.len(), |at| column + at);
    std::iter::once(&line[..first]).chain(line[first..].split(' ').filter(|word| !word.is_empty())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "lobby runs Paper 1.21.10 with two plugins.\n\n  ViaVersion 5.7.1  of 18 January\n\nPaper 1.21.11 has been out.\n\noptions\n  \
                        wait      nothing to do; you are told when it is listed by its authors\n  \
                        allow it  on Plugin via:  compatibilityOverride: {enabled: true, mode: Add, releases: [\"5.7.1\"]}\n";

    #[test]
    fn colour_marks_headings_without_changing_words() {
        let colored = styled(TEXT, true, None);
        let marked: Vec<&str> = colored.lines().filter(|line| line.contains('\u{1b}')).collect();
        assert_eq!(
            marked,
            ["\u{1b}[1mlobby runs Paper 1.21.10 with two plugins.\u{1b}[0m", "\u{1b}[1moptions\u{1b}[0m"]
        );
        assert_eq!(colored.replace("\u{1b}[1m", "").replace("\u{1b}[0m", ""), TEXT);
        assert_eq!(styled(TEXT, false, None), TEXT);
        assert_eq!(styled("", true, Some(80)), "");
    }

    #[test]
    fn long_lines_wrap_below_column_and_snippets_stay_whole() {
        let wrapped = styled(TEXT, false, Some(40));
        assert!(
            wrapped.contains(
                "  wait      nothing to do; you are told\n            when it is listed by its\n            authors\n"
            ),
            "{wrapped}"
        );
        assert!(wrapped.contains(
            "allow it  on Plugin via:  compatibilityOverride: {enabled: true, mode: Add, releases: [\"5.7.1\"]}\n"
        ));
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&wrapped), words(TEXT));
        assert_eq!(styled(TEXT, false, Some(200)), TEXT);
        assert_eq!(styled(TEXT, false, Some(10)), TEXT, "a very narrow terminal gets no wrapping");
    }
}
