//! Pure. Parses the server's answers, and builds command arguments.

use std::collections::BTreeMap;

/// The players online, by `minecraft:list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Online {
    /// The answer contained both numbers.
    Known {
        /// The number of players.
        count: u32,
        /// The maximum number of players.
        max: u32,
    },
    /// Any other text. On Paper an empty one means that the server is stopping. It never means zero players.
    Unknown,
}

/// Reads the two numbers of `There are 2 of a max of 20 players online: …`. The names after them are never counted, because Paper cuts the list
/// after the 14th.
pub fn online(text: &str) -> Online {
    let read = || {
        let (before, after) = text.split_once(" of a max of ")?;
        let before = before.rsplit(|c: char| !c.is_ascii_digit()).next()?;
        let after = &after[..after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len())];
        Some(Online::Known { count: before.parse().ok()?, max: after.parse().ok()? })
    };
    read().unwrap_or(Online::Unknown)
}

/// Whether the answer to `save-all flush` confirms it.
pub fn confirms_save(text: &str) -> bool {
    text.contains("Saved the game")
}

/// The state of autosave, by the answer to `save-off` or `save-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saving {
    /// It is off from now on.
    Off,
    /// It was already off.
    AlreadyOff,
    /// It is on from now on.
    On,
    /// It was already on.
    AlreadyOn,
}

/// Reads the answer to `save-off` or `save-on`. `None`: the text is unknown. Minecraft before 1.13 gives the same answer whether or not the state
/// changed.
pub fn saving(text: &str) -> Option<Saving> {
    let texts = [
        ("Automatic saving is now disabled", Saving::Off),
        ("Turned off world auto-saving", Saving::Off),
        ("Saving is already turned off", Saving::AlreadyOff),
        ("Automatic saving is now enabled", Saving::On),
        ("Turned on world auto-saving", Saving::On),
        ("Saving is already turned on", Saving::AlreadyOn),
    ];
    let text = strip_colours(text);
    texts.into_iter().find(|(part, _)| text.contains(part)).map(|(_, saving)| saving)
}

/// ` in minecraft:creative if entity @a`: only tests whether the dimension accepts a command. `execute` has supported this syntax since 1.13, and
/// changes nothing.
pub fn in_dimension_arguments(key: &str) -> String {
    format!(" in {key} if entity @a")
}

/// Whether the dimension exists, by the answer to that test. In an existing dimension the test passes or fails, and otherwise the dimension is
/// unknown.
pub fn has_dimension(text: &str) -> Option<bool> {
    let text = strip_colours(text);
    if text.contains("Test passed") || text.contains("Test failed") {
        return Some(true);
    }
    text.contains("Unknown dimension").then_some(false)
}

/// The text without colours: `§` and the following letter, including the 14 characters of a hex colour (`§x§r§r§g§g§b§b`).
pub fn strip_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '§' {
            characters.next();
        } else {
            plain.push(character);
        }
    }
    plain
}

/// Reads the answer of `bukkit:plugins`: names, with true for green ones. `None` if it is not such a list, so that no other text counts as "no
/// plugins".
///
/// It has two forms. Bukkit and old Paper write `Plugins (2): §aDemo§f, §cOther`. Paper since 1.19.4 writes a heading per kind and lines
/// `§8- §aDemo§f, §aOther`. An asterisk marks a legacy plugin.
pub fn plugins(text: &str) -> Option<BTreeMap<String, bool>> {
    let heading = strip_colours(text);
    let expected: usize = heading.split_once("Plugins (")?.1.split_once(')')?.0.parse().ok()?;
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let plain = strip_colours(line);
        let listed = if let Some((_, behind)) = line.split_once("):") {
            behind
        } else if plain.trim_start().starts_with("- ") {
            line.split_once("- ").map_or("", |(_, behind)| behind)
        } else {
            continue;
        };
        for entry in listed.split(',') {
            let name = strip_colours(entry);
            let name = name.trim().trim_start_matches('*').trim();
            if !name.is_empty() {
                found.insert(name.to_owned(), entry.contains("§a"));
            }
        }
    }
    // A truncated list must not look as if plugins were missing.
    (found.len() == expected).then_some(found)
}

/// ` @a {"text":"…"}`: JSON, in a form that servers since 1.21.5 also read as SNBT. The chat shows the text's lines one below the other. In JSON
/// a line break is the two characters `\n`, so the command stays on one line.
pub fn tellraw_arguments(text: &str) -> String {
    format!(" @a {}", component(&lines(text).join("\n")))
}

/// The parts of the screen in which the command `title` shows a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TitleKind {
    /// Above the hotbar.
    ActionBar,
    /// Large, across the screen. It shows the subtitle with it.
    Title,
    /// Below the title, when that is shown.
    Subtitle,
}

/// ` @a actionbar {"text":"…"}`, as [`tellraw_arguments`]. All three parts have one line, so only the first line is shown.
pub fn title_arguments(part: TitleKind, text: &str) -> String {
    let part = match part {
        TitleKind::ActionBar => "actionbar",
        TitleKind::Title => "title",
        TitleKind::Subtitle => "subtitle",
    };
    format!(" @a {part} {}", component(lines(text).first().map_or("", String::as_str)))
}

/// ` @a …`: the reason is the unescaped rest of the line. The server replaces a selector in it by the names of all players or entities that it
/// selects, also in `mail@example.org`, which has `@e`. Another form of the sign prevents that.
pub fn kick_arguments(reason: &str) -> String {
    format!(" @a {}", lines(reason).join(" / ").replace('@', "＠"))
}

fn component(text: &str) -> serde_json::Value {
    serde_json::json!({ "text": text, "color": "yellow" })
}

/// The lines with text, without control characters, because a line break would start another command in a console.
fn lines(text: &str) -> Vec<String> {
    let line = |line: &str| line.chars().filter(|character| !character.is_control()).collect::<String>();
    text.lines().map(line).filter(|line| !line.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn player_count_uses_leading_numbers_and_not_names() {
        let cut = "There are 20 of a max of 60 players online: Player01, Player02, ";
        assert_eq!(online(cut), Online::Known { count: 20, max: 60 });
        assert_eq!(online("There are 0 of a max of 20 players online: "), Online::Known { count: 0, max: 20 });
        // A plugin that translates the answer.
        assert_eq!(online("Jugadores\u{ff1a}2 of a max of 20\u{ff0c}"), Online::Known { count: 2, max: 20 });
    }

    #[test]
    fn unrecognized_player_list_is_unknown_and_never_zero() {
        for text in [
            "",
            "There are 5 out of maximum 10 players online.",
            "Unknown command. Type \"/help\" for help.\n",
            "There are many of a max of 20 players online",
            "There are 99999999999 of a max of 20",
            "There are 3 of a max of ",
        ] {
            assert_eq!(online(text), Online::Unknown, "{text}");
        }
    }

    #[test]
    fn save_is_confirmed_by_its_final_words_only() {
        assert!(confirms_save("Saving the game (this may take a moment!)Saved the game"));
        assert!(!confirms_save("Saving the game (this may take a moment!)"));
        assert!(!confirms_save(""));
    }

    #[test]
    fn saving_state_is_recognized_in_phrases_of_each_version() {
        for (text, expected) in [
            ("Automatic saving is now disabled", Saving::Off),
            ("Turned off world auto-saving", Saving::Off),
            ("Saving is already turned off", Saving::AlreadyOff),
            ("Automatic saving is now enabled\n", Saving::On),
            ("§7Turned on world auto-saving", Saving::On),
            ("Saving is already turned on", Saving::AlreadyOn),
        ] {
            assert_eq!(saving(text), Some(expected), "{text}");
        }
        for text in ["", "Command not found", "Unknown command. Type \"/help\" for help.\n", "Saved the game"] {
            assert_eq!(saving(text), None, "{text}");
        }
    }

    #[test]
    fn dimension_is_known_from_test_result_and_unknown_otherwise() {
        assert_eq!(in_dimension_arguments("minecraft:creative"), " in minecraft:creative if entity @a");
        for (text, expected) in [
            ("Test failed", Some(true)),
            ("§cTest failed\n", Some(true)),
            ("Test passed, count: 3", Some(true)),
            ("Unknown dimension 'minecraft:creative'", Some(false)),
            ("", None),
            ("Unknown command. Type \"/help\" for help.\n", None),
        ] {
            assert_eq!(has_dimension(text), expected, "{text}");
        }
    }

    #[test]
    fn plugin_list_of_paper_is_read_with_hex_colours() {
        let text = "§fServer Plugins (3):\n§x§0§2§8§8§d§1Paper Plugins (1):\n §8- §aModern\n§x§e§d§8§1§0§6Bukkit Plugins (2):\n §8- §aDemo§r, §c*Old\n";
        let expected = BTreeMap::from([("Demo".into(), true), ("Modern".into(), true), ("Old".into(), false)]);
        assert_eq!(plugins(text), Some(expected));
        let recorded = "§fServer Plugins (1):\n§x§e§d§8§1§0§6Bukkit Plugins:\n §8- §aDemo\n";
        assert_eq!(plugins(recorded), Some(BTreeMap::from([("Demo".into(), true)])));
    }

    #[test]
    fn plugin_list_of_bukkit_on_one_line_is_read() {
        let text = "Plugins (2): §aDemo§f, §cOther";
        assert_eq!(plugins(text), Some(BTreeMap::from([("Demo".into(), true), ("Other".into(), false)])));
        assert_eq!(plugins("§fServer Plugins (0):\n"), Some(BTreeMap::new()));
    }

    #[test]
    fn truncated_or_missing_plugin_list_is_unknown() {
        assert_eq!(plugins("§fServer Plugins (2):\n§x§e§d§8§1§0§6Bukkit Plugins:\n §8- §aDemo"), None);
        assert_eq!(plugins(""), None);
        assert_eq!(plugins("Unknown command. Type \"/help\" for help."), None);
    }

    #[test]
    fn disconnect_reason_is_one_line() {
        assert_eq!(kick_arguments("Update.\nop Mallory"), " @a Update. / op Mallory");
    }

    #[test]
    fn text_for_players_never_becomes_command() {
        for text in [
            "now\nop Mallory",
            "now\r\nstop\r",
            "now\u{85}stop\u{0}",
            "§cnow§r @a @e[type=item]",
            r#"","clickEvent":{"action":"run_command","value":"/op Mallory"},"x":""#,
            r#"now\",\u0022}] run op Mallory"#,
            "/op Mallory",
        ] {
            let chat = tellraw_arguments(text);
            let component: serde_json::Value = serde_json::from_str(chat.strip_prefix(" @a ").unwrap()).unwrap();
            let fields: Vec<&String> = component.as_object().unwrap().keys().collect();
            assert_eq!(fields, ["color", "text"], "{chat}");
            let titles =
                [TitleKind::ActionBar, TitleKind::Title, TitleKind::Subtitle].map(|of| title_arguments(of, text));
            for title in &titles {
                let (_, json) = title.split_once('{').unwrap();
                assert!(serde_json::from_str::<serde_json::Value>(&format!("{{{json}")).is_ok(), "{title}");
            }
            let kick = kick_arguments(text);
            assert!(!kick.strip_prefix(" @a ").unwrap().contains('@'), "a selector is replaced by names: {kick}");
            for command in titles.iter().chain([&chat, &kick]) {
                assert!(!command.contains(char::is_control), "{command:?}");
            }
        }
        assert_eq!(kick_arguments("See mail@example.org"), " @a See mail＠example.org");
    }

    #[test]
    fn player_message_cannot_escape_its_quotes() {
        let arguments = tellraw_arguments("say \"hi\"\\ and\u{7} more");
        assert_eq!(arguments, r#" @a {"color":"yellow","text":"say \"hi\"\\ and more"}"#);
    }

    #[test]
    fn chat_shows_all_lines_and_titles_show_the_first() {
        let text = "Restart in 1 minute.\r\n\nNeustart in 1 minute.\n";
        let chat = r#" @a {"color":"yellow","text":"Restart in 1 minute.\nNeustart in 1 minute."}"#;
        assert_eq!(tellraw_arguments(text), chat);
        assert!(!chat.contains('\n'), "a command must be one line");
        for (part, name) in
            [(TitleKind::ActionBar, "actionbar"), (TitleKind::Title, "title"), (TitleKind::Subtitle, "subtitle")]
        {
            let expected = format!(r#" @a {name} {{"color":"yellow","text":"Restart in 1 minute."}}"#);
            assert_eq!(title_arguments(part, text), expected);
        }
    }
}
