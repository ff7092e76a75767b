//! Pure. Recognizes the lines of a server's log that report damaged chunks or region files.
//!
//! A line is recognized by its level and by the start of its message. Chat is on level INFO, and plugin messages begin with the plugin's name in
//! brackets. The texts are those of the classes named below, of Minecraft from 1.16 on and of Paper for the same versions. They come from public
//! sources and the logs in Paper's issues 4113, 4758, 6718, 6932 and 12062. Failed reads of the disk (`Failed to read chunk`,
//! `Couldn't load chunk`) are not included, because a later read may succeed.

/// How many characters of a line are kept.
const MAX_SHOWN_CHARS: usize = 200;

/// The start of a message, and the text that follows the name of a file or chunk.
const DAMAGE_PATTERNS: [(&str, &str); 18] = [
    // `net.minecraft.world.level.chunk.storage.RegionFile`.
    ("Region file ", " has truncated header: "),
    ("Region file ", " has invalid sector at index: "),
    ("Region file ", " has an invalid sector at index: "),
    ("Chunk ", " header is truncated: "),
    ("Chunk ", " is allocated, but stream is missing"),
    ("Chunk has both internal and external streams", ""),
    ("Chunk ", " stream is truncated: "),
    ("Declared size ", " is negative"),
    ("Chunk ", " has invalid chunk stream version "),
    ("External chunk path ", " is not file"),
    // Additions of Paper to it, and to `RegionFileStorage`.
    ("Corrupt regionfile header detected! Attempting to re-calculate header offsets for regionfile ", ""),
    ("Detected invalid header for regionfile ", ""),
    ("Failed to allocate space for local chunk (overlapping data??) at ", ""),
    ("Attempting to read chunk data at ", " but got chunk data for "),
    // `ChunkSerializer`, since 1.21.2 `SerializableChunkData`, of `net.minecraft.world.level.chunk.storage`.
    ("Chunk file at ", " is in the wrong location; relocating"),
    // `net.minecraft.server.level.ChunkMap`.
    ("Chunk file at ", " is missing level data, skipping"),
    // Paper since 1.21. It names the class if that is not one of Minecraft's own.
    (
        "[ca.spottedleaf.moonrise.patches.chunk_system.io.MoonriseRegionFileIO] Failed to decompress chunk data for task: ",
        "",
    ),
    (
        "[ca.spottedleaf.moonrise.patches.chunk_system.scheduling.task.ChunkLoadTask] Failed to parse chunk data for task: ",
        ", chunk data will be lost",
    ),
];

/// The message of a line of `logs/latest.log`, if it reports damage: `[12:00:07] [IO-Worker-3/WARN]: Region file …`.
pub(super) fn damage_message(line: &str) -> Option<&str> {
    let (head, message) = line.split_once("]: ")?;
    let (_, level) = head.rsplit_once('/')?;
    let reports_damage =
        |(begins, behind): &(&str, &str)| message.strip_prefix(begins).is_some_and(|rest| rest.contains(behind));
    (matches!(level, "WARN" | "ERROR") && DAMAGE_PATTERNS.iter().any(reports_damage)).then(|| message.trim_end())
}

/// The part of a message that can be displayed: its paths contain names that users chose.
pub(super) fn printable(message: &str) -> String {
    message.chars().filter(|c| !is_hidden(*c)).take(MAX_SHOWN_CHARS).collect()
}

/// Whether the character moves the cursor or changes the text direction.
fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as servers write them.
    const REAL_LINES: [&str; 19] = [
        "[13:45:36] [Paper RegionFile IO Thread/WARN]: Region file ./world/region/r.-1.0.mca has an invalid sector at index: 428; size has to be > 0",
        "[01:43:06] [IO-Worker-1/WARN]: Region file ./world/entities/r.0.-3.mca has an invalid sector at index: 608; sector 45 is out of bounds",
        "[01:43:06] [IO-Worker-1/WARN]: Region file ./world/region/r.0.0.mca has invalid sector at index: 3; sector 1 overlaps with header",
        "[01:43:06] [IO-Worker-1/WARN]: Region file ./world/region/r.0.0.mca has truncated header: 4096",
        "[20:00:00] [Paper RegionFile IO Thread/ERROR]: Chunk [-24, -10] header is truncated: expected 0 but read 0",
        "[20:00:00] [IO-Worker-1/WARN]: Chunk [1, 2] is allocated, but stream is missing",
        "[20:00:00] [IO-Worker-1/WARN]: Chunk has both internal and external streams",
        "[20:00:00] [IO-Worker-1/ERROR]: Chunk [1, 2] stream is truncated: expected 5000 but read 4000",
        "[20:00:00] [IO-Worker-1/ERROR]: Declared size -5 of chunk [1, 2] is negative",
        "[20:00:00] [IO-Worker-1/ERROR]: Chunk [1, 2] has invalid chunk stream version 127",
        "[20:00:00] [IO-Worker-1/ERROR]: External chunk path ./world/region/c.1.2.mcc is not file",
        "[13:55:20] [RegionFile I/O Thread #0/ERROR]: Attempting to read chunk data at [18, 4] but got chunk data for [8, 13] instead! Attempting regionfile recalculation for regionfile /data/./Map2/region/r.0.0.mca",
        "[13:55:20] [RegionFile I/O Thread #0/WARN]: Corrupt regionfile header detected! Attempting to re-calculate header offsets for regionfile /data/./Map2/region/r.0.0.mca",
        "[13:55:20] [RegionFile I/O Thread #0/ERROR]: Detected invalid header for regionfile /data/./Map2/region/r.0.0.mca! Recalculating header...",
        "[04:33:44] [Paper Async Chunk Urgent Task Thread/ERROR]: Chunk file at [-236, -120] is in the wrong location; relocating. (Expected [-236, -120], got [-236, -119])",
        "[04:33:44] [Server thread/ERROR]: Chunk file at [3, 4] is missing level data, skipping",
        "[04:33:44] [IO-Worker-1/ERROR]: Failed to allocate space for local chunk (overlapping data??) at (1,2) in regionfile /data/world/region/r.0.0.mca, chunk will be regenerated",
        "[20:33:08] [Paper Common Worker #0/ERROR]: [ca.spottedleaf.moonrise.patches.chunk_system.io.MoonriseRegionFileIO] Failed to decompress chunk data for task: Task for world: 'world_the_end' at (-135,4) type: CHUNK_DATA, hash: 901536466",
        "[19:54:22] [Paper Common Worker #0/ERROR]: [ca.spottedleaf.moonrise.patches.chunk_system.scheduling.task.ChunkLoadTask] Failed to parse chunk data for task: GenericDataLoadTask{world: world, chunk: (5,6)}, chunk data will be lost",
    ];

    #[test]
    fn damage_lines_of_real_servers_are_recognized() {
        for line in REAL_LINES {
            assert_eq!(damage_message(line), Some(line.split_once("]: ").unwrap().1), "{line}");
        }
        assert_eq!(
            damage_message("[1:1:1] [a/ERROR]: Chunk file at [3, 4] is missing level data, skipping\r"),
            Some("Chunk file at [3, 4] is missing level data, skipping")
        );
    }

    #[test]
    fn chat_plugin_and_unrelated_error_lines_report_no_damage() {
        for line in [
            "[12:00:10] [Async Chat Thread - #0/INFO]: <Bob> Chunk file at [3, 4] is missing level data, skipping",
            "[12:00:10] [Server thread/INFO]: Chunk file at [3, 4] is missing level data, skipping",
            "[12:00:10] [Server thread/WARN]: [Shop] Chunk file at [3, 4] is missing level data, skipping",
            "[12:00:10] [Server thread/WARN]: [Shop/WARN]: Chunk file at [3, 4] is missing level data, skipping",
            "[12:00:10] [Server thread/ERROR]: Couldn't load chunk [3, 4]",
            "[12:00:10] [Server thread/ERROR]: Chunk [1, 2] is on fire",
            "[12:00:10] [Server thread/WARN]: Can't keep up! Is the server overloaded?",
            "[19:20:48] [RegionFile I/O Thread #0/ERROR]: [ca.spottedleaf.moonrise.patches.chunk_system.io.MoonriseRegionFileIO] Failed to read chunk data for task: Task",
            "\tat net.minecraft.world.level.chunk.storage.RegionFile.recalculateHeader(RegionFile.java:142)",
            "Chunk file at [3, 4] is missing level data, skipping",
            "",
        ] {
            assert_eq!(damage_message(line), None, "{line}");
        }
    }

    #[test]
    fn damage_message_is_bounded_without_control_characters() {
        assert_eq!(printable("Region file ./\u{1b}[2J\u{202e}w\n has"), "Region file ./[2Jw has");
        assert_eq!(printable(&"é".repeat(MAX_SHOWN_CHARS + 1)), "é".repeat(MAX_SHOWN_CHARS));
    }
}
