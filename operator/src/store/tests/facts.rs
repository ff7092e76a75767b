//! Edge (writes). Tests the reader of Paper JARs.

use artifacts::FactsError;
use fixtures::jar::{self, Entry, Minecraft};
use tempfile::NamedTempFile;

use super::super::paper_descriptor;

fn write_jar(bytes: &[u8]) -> NamedTempFile {
    let jar = NamedTempFile::new().unwrap();
    std::fs::write(&jar, bytes).unwrap();
    jar
}

const MINECRAFT: Minecraft<'_> = Minecraft { id: "1.21.10", world_version: 4556, protocol: Some(773), java: 21 };

#[test]
fn paper_jar_gives_world_format_and_mojang_jar() {
    let facts = paper_descriptor::read_facts(
        write_jar(&jar::paper(&MINECRAFT, 130, "https://piston-data.mojang.com/x/server.jar")).path(),
    )
    .unwrap();
    assert_eq!((facts.minecraft.as_deref(), facts.data_version), (Some("1.21.10"), Some(4556)));
    let mojang = facts.mojang.unwrap();
    assert_eq!(mojang.file_name, "mojang_1.21.10.jar");
    assert_eq!(mojang.url, "https://piston-data.mojang.com/x/server.jar");
    assert_eq!(format!("sha256:{}", mojang.sha256), super::sha256(&jar::mojang(&MINECRAFT)));
}

#[test]
fn old_paper_jar_gives_no_facts() {
    let facts =
        paper_descriptor::read_facts(write_jar(&jar::archive(&[Entry::new("patch.properties", "x")])).path()).unwrap();
    assert_eq!(facts, paper_descriptor::PaperFacts { data_version: None, minecraft: None, mojang: None });
}

#[test]
fn download_context_cannot_name_a_path() {
    let sha = "ab".repeat(32);
    let of = |context: String| {
        paper_descriptor::read_facts(
            write_jar(&jar::archive(&[Entry::new("META-INF/download-context", context)])).path(),
        )
    };
    assert!(of(format!("{sha}\thttps://x/y.jar\tmojang_1.jar\n")).is_ok());
    for bad in ["../../eula.txt", "/etc/passwd", "a/b.jar", "", ".hidden", "a b"] {
        assert!(
            matches!(of(format!("{sha}\thttps://x/y.jar\t{bad}")), Err(FactsError::UnreadableDescriptor { .. })),
            "{bad}"
        );
    }
    assert!(of(format!("{sha}\thttps://x/y.jar")).is_err());
    assert!(of("abcd\thttps://x/y.jar\ta.jar".to_owned()).is_err());
    assert!(of(format!("{sha}\tnowhere\ta.jar")).is_err());
}
