//! Pure. Formats tables with aligned columns.

/// Formats rows with columns as wide as needed, each after `indent`. Lines have no trailing spaces.
pub(crate) fn table(indent: &str, rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        text.push_str(format!("{indent}{}", cells.join("  ")).trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_columns_fit_widest_text_without_trailing_spaces() {
        let rows = [vec!["a".to_owned(), "long".to_owned()], vec!["\u{e4}\u{e4}".to_owned(), String::new()]];
        assert_eq!(table("  ", &rows), "  a   long\n  \u{e4}\u{e4}\n");
        assert_eq!(table("", &[]), "");
    }
}
