//! Pure. Lays out the diagram and writes the SVG.

use std::fmt::Write as _;

use super::section::{DiagramBox, Kind, Section};
use super::xml::{escaped, fitted};
use crate::render::phrases::list;

/// All lengths are in pixels. 840 fits a documentation page and half a screen.
pub(super) const WIDTH: usize = 840;
/// The margin left of the left column is used by the lines between dependencies.
const LEFT: usize = 50;
const LEFT_WIDTH: usize = 350;
const RIGHT: usize = 490;
const RIGHT_WIDTH: usize = 330;
const BOX_HEIGHT: usize = 44;
/// From the top of one box to the next.
const BOX_STEP: usize = 54;
/// From the top of a section to its first box.
const HEAD_HEIGHT: usize = 66;
const MARGIN: usize = 20;
/// Around the text of a box.
const PADDING: usize = 12;
const LINE_HEIGHT: usize = 20;

/// The style, with both colour schemes and without external resources.
const STYLE: &str = "text{font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2328}\
.title{font-size:15px;font-weight:bold}.head,.note{fill:#59636e}.name{font-weight:bold}\
.page{fill:#ffffff}.card{fill:#f6f8fa;stroke:#afb8c1}.chosen{stroke:#1a7f37}.holds{fill:#fff8c5;stroke:#9a6700;stroke-width:2}\
.waits{stroke-dasharray:5 3}.more{fill:none;stroke:none}.line{fill:none;stroke:#9a6700;stroke-width:1.5}.need{fill:none;stroke:#afb8c1}\
.tip{fill:#9a6700}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.head,.note{fill:#9198a1}.page{fill:#0d1117}\
.card{fill:#151b23;stroke:#3d444d}.chosen{stroke:#3fb950}.holds{fill:#2e2a1f;stroke:#d29922}.more{fill:none;stroke:none}\
.line{stroke:#d29922}.need{stroke:#3d444d}.tip{fill:#d29922}}";

/// Draws the whole diagram. `heads` are placed above all sections.
pub(super) fn draw_diagram(sections: &[Section], heads: &[String]) -> String {
    let sections: Vec<Section> = sections.iter().map(Section::truncated).collect();
    let mut body = String::new();
    let mut top = MARGIN;
    for head in heads {
        draw_text(&mut body, "head", MARGIN, top + 12, &fitted(head, WIDTH - 2 * MARGIN));
        top += LINE_HEIGHT;
    }
    for section in &sections {
        top = draw_section(&mut body, section, top) + MARGIN;
    }
    let height = top.max(2 * MARGIN);
    let title = match &sections[..] {
        [] => "no server".to_owned(),
        [section] => section.title.clone(),
        [first, others @ ..] => format!("{}, and {} more servers", first.title, others.len()),
    };
    let description: Vec<String> =
        heads.iter().map(|head| format!("{head}.")).chain(sections.iter().map(section_text)).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" aria-labelledby=\"title description\">\n<title id=\"title\">{}</title>\n<desc id=\"description\">{}</desc>\n\
         <style>{STYLE}</style>\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path class=\"tip\" d=\"M0 0L8 4L0 8Z\"/></marker></defs>\n\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\"/>\n{body}</svg>\n",
        escaped(&title),
        escaped(&description.join(" ")),
    )
}

/// Draws a section and returns its lower end.
fn draw_section(out: &mut String, section: &Section, top: usize) -> usize {
    draw_text(out, "title", MARGIN, top + 16, &fitted(&section.title, (WIDTH - 2 * MARGIN) * 4 / 5));
    for (x, head, boxes) in [(LEFT, section.left_head, &section.left), (RIGHT, section.right_head, &section.right)] {
        if !boxes.is_empty() {
            draw_text(out, "head", x, top + 48, head);
        }
    }
    let box_top = |position: usize| top + HEAD_HEIGHT + position * BOX_STEP;
    let middle = |position: usize| box_top(position) + BOX_HEIGHT / 2;
    for (track, (from, to)) in section.needs.iter().enumerate() {
        let x = LEFT - 8 - track % 4 * 7;
        let (from, to) = (middle(*from) + 6, middle(*to) - 6);
        write_element(out, format_args!("<path class=\"need\" d=\"M{LEFT} {from}H{x}V{to}H{LEFT}\"/>"));
    }
    for (waits, blocker) in &section.waits {
        let (from, to, end) = (middle(*waits), middle(*blocker), LEFT + LEFT_WIDTH + 1);
        let bend = usize::midpoint(RIGHT, end);
        write_element(
            out,
            format_args!(
                "<path class=\"line\" marker-end=\"url(#tip)\" d=\"M{RIGHT} {from}C{bend} {from} {bend} {to} {end} {to}\"/>"
            ),
        );
    }
    for (position, one) in section.left.iter().enumerate() {
        draw_box(out, one, LEFT, box_top(position), LEFT_WIDTH);
    }
    for (position, one) in section.right.iter().enumerate() {
        draw_box(out, one, RIGHT, box_top(position), RIGHT_WIDTH);
    }
    match section.left.len().max(section.right.len()) {
        0 => top + HEAD_HEIGHT / 2,
        rows => box_top(rows - 1) + BOX_HEIGHT,
    }
}

fn draw_box(out: &mut String, diagram_box: &DiagramBox, x: usize, y: usize, width: usize) {
    let class = match diagram_box.kind {
        Kind::Chosen => "chosen",
        Kind::Blocks => "holds",
        Kind::Waits => "waits",
        Kind::More => "more",
    };
    write_element(
        out,
        format_args!(
            "<rect class=\"card {class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{BOX_HEIGHT}\" rx=\"6\"/>"
        ),
    );
    let room = width - 2 * PADDING;
    let name_at = if diagram_box.note.is_empty() { y + 26 } else { y + 18 };
    draw_text(out, "name", x + PADDING, name_at, &fitted(&diagram_box.name, room));
    if !diagram_box.note.is_empty() {
        draw_text(out, "note", x + PADDING, y + 35, &fitted(&diagram_box.note, room));
    }
}

fn draw_text(out: &mut String, class: &str, x: usize, y: usize, content: &str) {
    write_element(out, format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(content)));
}

fn write_element(out: &mut String, element: std::fmt::Arguments<'_>) {
    writeln!(out, "{element}").expect("writing to a String never fails");
}

/// The text alternative of a section for screen readers.
fn section_text(section: &Section) -> String {
    let mut description = format!("{}.", section.title);
    for (head, boxes) in [(section.left_head, &section.left), (section.right_head, &section.right)] {
        if !boxes.is_empty() {
            let all: Vec<String> = boxes.iter().map(DiagramBox::description).collect();
            write!(description, " {head}: {}.", list(&all, usize::MAX)).expect("writing to a String never fails");
        }
    }
    for (waits, diagram_box) in section.right.iter().enumerate() {
        let held = section.waits.iter().filter(|wait| wait.0 == waits);
        let names: Vec<&str> = held.map(|wait| section.left[wait.1].name.as_str()).collect();
        if !names.is_empty() {
            write!(description, " {} waits for {}.", diagram_box.name, list(&names, usize::MAX))
                .expect("writing to a String never fails");
        }
    }
    description
}
