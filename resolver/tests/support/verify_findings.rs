//! Edge (reads). Reads the findings of `resolver verify` from the snapshots of its tests, as text and as data.

use std::fs;
use std::io;

use serde_json::Value;

/// The directory of the snapshots. The findings have the same name with the suffix `FOUND`.
const SNAPSHOTS: &str = "cli/tests/cli/snapshots";
const FINDINGS_SUFFIX: &str = "-found";

/// The lists of a report: field, and heading of the printed list.
const LISTS: [(&str, &str); 2] = [("facts", "facts that no longer hold"), ("request", "unmet requests")];

/// One finding.
pub(crate) struct Finding {
    /// The snapshot that contains its line.
    pub(crate) snapshot: String,
    /// The finding as data.
    pub(crate) data: Value,
    /// Its line, and the heading of the list.
    pub(crate) text: String,
}

/// All findings of the tests.
pub(crate) fn findings() -> io::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for entry in fs::read_dir(SNAPSHOTS)? {
        let file = entry?.file_name();
        let Some(snapshot) = file.to_str().and_then(|file| file.strip_suffix(&format!("{FINDINGS_SUFFIX}.snap")))
        else {
            continue;
        };
        let printed = read_snapshot(snapshot)?;
        let found: Value = serde_json::from_str(&read_snapshot(&format!("{snapshot}{FINDINGS_SUFFIX}"))?)?;
        for (field, heading) in LISTS {
            let lines = printed.lines().skip_while(|line| *line != heading).skip(1);
            let lines: Vec<&str> = lines.take_while(|line| line.starts_with("  ")).collect();
            let found = found[field].as_array().unwrap();
            assert_eq!(lines.len(), found.len(), "{snapshot}: each finding in `{field}` is one line");
            findings.extend(lines.iter().zip(found).map(|(line, data)| Finding {
                snapshot: snapshot.to_owned(),
                data: data.clone(),
                text: format!("{heading}\n{line}"),
            }));
        }
    }
    Ok(findings)
}

/// A snapshot without its header.
fn read_snapshot(name: &str) -> io::Result<String> {
    let text = fs::read_to_string(format!("{SNAPSHOTS}/{name}.snap"))?;
    Ok(text.splitn(3, "---\n").nth(2).unwrap_or_default().to_owned())
}
