//! Pure. Tests diagrams: geometry, hostile names, long lists.

use super::draw::{WIDTH, draw_diagram};
use super::section::{DiagramBox, Kind, MAX_BOXES, Section};
use super::*;
use crate::model::budget::Limit;

/// An element: its name and its attributes, unescaped.
type Element = (String, Vec<(String, String)>);

/// Parses XML as strictly as a browser parses an SVG: every tag closed in order, every `&` a known entity, no character
/// that XML does not allow. Returns the elements and all text.
fn parse_svg(text: &str) -> (Vec<Element>, String) {
    assert!(text.chars().all(|c| c == '\n' || !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}')), "{text}");
    let (mut elements, mut open, mut texts) = (Vec::new(), Vec::new(), String::new());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        texts.push_str(&unescaped(&rest[..at]));
        // In an attribute `>` is escaped as well.
        let (tag, after) = rest[at + 1..].split_once('>').expect("a tag ends with `>`");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "{text}");
            texts.push('\n');
            continue;
        }
        let (tag, is_closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(name.chars().all(|c| c.is_ascii_alphabetic()), "<{tag}>");
        let mut read = Vec::new();
        while !attributes.trim().is_empty() {
            let (key, value) = attributes.trim_start().split_once("=\"").expect("an attribute has a quoted value");
            let (value, after) = value.split_once('"').expect("an attribute value ends with a quote");
            read.push((key.to_owned(), unescaped(value)));
            attributes = after;
        }
        elements.push((name.to_owned(), read));
        if !is_closed {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{rest}");
    (elements, texts)
}

fn unescaped(text: &str) -> String {
    let mut parts = text.split('&');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (entity, after) = part.split_once(';').expect("an entity ends with `;`");
        plain.push_str(match entity {
            "amp" => "&",
            "lt" => "<",
            "gt" => ">",
            "quot" => "\"",
            "apos" => "'",
            other => panic!("unknown entity: &{other};"),
        });
        plain.push_str(after);
    }
    plain
}

fn number(element: &Element, key: &str) -> usize {
    element.1.iter().find(|(name, _)| name == key).unwrap_or_else(|| panic!("{key} of {element:?}")).1.parse().unwrap()
}

/// Everything is inside the diagram, no box overlaps another, no text is wider than its box, and lines end at boxes.
fn assert_layout(svg: &str) {
    let (elements, _) = parse_svg(svg);
    let height = number(&elements[0], "height");
    assert_eq!(number(&elements[0], "width"), WIDTH);
    let is = |element: &&Element, class: &str| {
        element.1.iter().any(|(key, value)| key == "class" && value.starts_with(class))
    };
    let boxes: Vec<[usize; 4]> = elements
        .iter()
        .filter(|element| is(element, "card"))
        .map(|diagram_box| ["x", "y", "width", "height"].map(|key| number(diagram_box, key)))
        .collect();
    for (at, [x, y, wide, high]) in boxes.iter().enumerate() {
        assert!(x + wide <= WIDTH && y + high <= height, "a box is outside the diagram");
        for [other_x, other_y, other_wide, other_high] in &boxes[at + 1..] {
            let is_separate = x + wide <= *other_x
                || other_x + other_wide <= *x
                || y + high <= *other_y
                || other_y + other_high <= *y;
            assert!(is_separate, "two boxes overlap at {x},{y}");
        }
    }
    for text in elements.iter().filter(|(name, _)| name == "text") {
        assert!(number(text, "x") < WIDTH && number(text, "y") < height, "{text:?}");
    }
    for path in elements.iter().filter(|element| is(element, "line")) {
        let d = &path.1.iter().find(|(key, _)| key == "d").unwrap().1;
        let numbers: Vec<usize> = d.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
        let [from_x, from_y, .., to_x, to_y] = numbers[..] else { panic!("{d}") };
        assert!(boxes.iter().any(|[x, y, _, high]| from_x == *x && from_y == y + high / 2), "{d} starts at no box");
        assert!(
            boxes.iter().any(|[x, y, wide, high]| to_x == x + wide + 1 && to_y == y + high / 2),
            "{d} ends at no box"
        );
    }
}

fn blocked_section(count: usize, name: &str) -> Section {
    let mut section = Section::with_title(format!("{name} runs Paper 1.21.10 (build 129)"));
    section.left_head = "chosen";
    section.right_head = "waits";
    for at in 0..count {
        section.left.push(DiagramBox::new(Kind::Chosen, format!("{name}{at} 1.0"), "listed for it"));
    }
    section.right.push(DiagramBox::new(Kind::Waits, "Paper 1.21.11", format!("out since {name}")));
    if let Some(last) = section.left.last_mut() {
        last.kind = Kind::Blocks;
        section.waits.insert((0, count - 1));
    }
    if count > 2 {
        section.needs.insert((1, 2));
        section.needs.insert((count / 2, 0));
    }
    section
}

#[test]
fn diagrams_of_any_size_are_well_laid_out() {
    for count in [0, 1, 2, 5, MAX_BOXES, MAX_BOXES + 1, 400] {
        let section = blocked_section(count, "Via");
        let svg = draw_diagram(&[section], &["without A".to_owned()]);
        assert_layout(&svg);
        assert_eq!(svg.matches("class=\"line\"").count(), count.min(1), "{count}");
        assert!(svg.len() < 20_000, "{count}: {}", svg.len());
    }
    assert_layout(&draw_diagram(&[], &[]));
    assert_layout(&draw_diagram(
        &[blocked_section(3, "a"), Section::with_title("nothing".to_owned()), blocked_section(2, "b")],
        &[],
    ));
}

#[test]
fn diagram_list_counts_omitted_entries_and_keeps_blockers() {
    let (_, texts) = parse_svg(&draw_diagram(&[blocked_section(27, "Via")], &[]));
    assert!(texts.contains("\nand 14 more\n"), "{texts}");
    assert!(texts.contains("\nVia26 1.0\n") && !texts.contains("\nVia20 1.0\n"), "the blocker is listed: {texts}");
    assert!(texts.contains("Paper 1.21.11 waits for Via26 1.0."), "{texts}");
    let mut conflict = Section::with_title("no".to_owned());
    conflict.left = vec![DiagramBox::new(Kind::Blocks, "a", ""); 3];
    conflict.left_unnamed = 5;
    assert!(parse_svg(&draw_diagram(&[conflict], &[])).1.contains("\nand 5 more\n"));
}

#[test]
fn diagram_escapes_markup_in_names() {
    for name in [
        "</text></svg><script>alert(1)</script>",
        "\"onload=\"alert(1)",
        "a & b &amp; c",
        "]]><!-- ' --> <![CDATA[",
        "\u{1b}[2J\u{0}\u{ffff}\u{202e}",
        "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY a \"b\">]>&a;",
        "插件插件插件插件插件插件插件插件插件插件插件插件插件插件插件插件插件插件插件插件",
        &"w".repeat(5_000),
    ] {
        let svg = draw_diagram(&[blocked_section(3, name)], &[name.to_owned()]);
        assert_layout(&svg);
        let (elements, texts) = parse_svg(&svg);
        let allowed = ["svg", "title", "desc", "style", "defs", "marker", "path", "rect", "text"];
        assert!(elements.iter().all(|(name, _)| allowed.contains(&name.as_str())), "{svg}");
        let start: String =
            crate::model::untrusted_text::sanitize_line(name).replace('\u{ffff}', "").chars().take(30).collect();
        assert!(texts.contains(start.trim()), "{texts}");
    }
}

#[test]
fn diagram_text_is_cut_and_wide_letters_count_double() {
    assert_eq!(xml::fitted("short", 100), "short");
    assert_eq!(xml::fitted(&"x".repeat(50), 74), "xxxxxxxxx…");
    assert_eq!(xml::fitted(&"插".repeat(50), 74), "插插插插…");
}

#[test]
fn diagram_loads_and_executes_no_content() {
    let svg = draw_diagram(&[blocked_section(3, "Via")], &[]);
    for forbidden in ["<script", "href", "@import", "http://www.w3.org/1999", "<image", "<foreignObject", "onload"] {
        assert!(!svg.contains(forbidden), "{forbidden}");
    }
    assert_eq!(svg.matches("url(").count(), svg.matches("url(#").count(), "every `url()` refers to the diagram itself");
    assert_eq!(svg.matches("://").count(), 1, "the only URL is the SVG namespace");
    assert!(svg.contains("prefers-color-scheme:dark"));
    assert!(svg.contains("<title id=\"title\">") && svg.contains("<desc id=\"description\">"));
}

#[test]
fn diagram_shows_unmanaged_blockers_with_box_and_line() {
    let why = serde_json::json!({
        "answer": "whyNot", "server": "games/lobby", "target": "1.21.11", "possible": false, "exists": true,
        "unusable": {"why": "unmanaged", "files": ["Shop.jar", "Warps.jar"]}, "ready": ["ViaVersion"], "blockers": [],
    });
    let svg = render(&[serde_json::from_value(why).unwrap()], &[]);
    assert_layout(&svg);
    let (_, texts) = parse_svg(&svg);
    assert!(texts.contains("Paper 1.21.11 waits for Shop.jar and Warps.jar."), "{texts}");
    assert_eq!(svg.matches("class=\"card holds\"").count(), 2, "{svg}");
}

#[test]
fn diagram_of_thousand_servers_draws_twenty() {
    let none = Explanation::GaveUp(BudgetExceeded { steps: 7, limit: Limit::Steps, clashing: vec!["Shop".to_owned()] });
    let (_, texts) = parse_svg(&render(&vec![none; 1_000], &[]));
    assert_eq!(texts.matches("\nShop\n").count(), MAX_SERVERS, "{texts}");
    assert_eq!(texts.matches("\nno solution was found within 7 steps\n").count(), MAX_SERVERS);
    assert!(texts.contains("20 of 1000 servers, the others are not drawn"), "{texts}");
}
