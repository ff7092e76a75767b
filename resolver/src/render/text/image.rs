//! Pure. Renders the text about Java and the image.

use super::builder::TextBuilder;
use crate::explanation::{ChosenImage, ImageChoice};
use crate::render::phrases::list;

/// Writes it if there is anything to report.
pub(super) fn image(page: &mut TextBuilder, chosen: &ChosenImage) {
    let needs = match chosen.needed_by.as_slice() {
        [] => format!("Java {}", chosen.java),
        [one] => format!("Java {}, which {one} needs", chosen.java),
        names => format!("Java {}, which {} need", chosen.java, list(names, 3)),
    };
    let Some(image) = &chosen.image else {
        if !chosen.needed_by.is_empty() {
            page.gap();
            page.line(&format!("Runs on {needs}."));
        }
        return;
    };
    page.gap();
    let name = image_name(image);
    let line = match chosen.choice {
        ImageChoice::Pinned => format!("Image {name}, pinned by you (`spec.image`)."),
        ImageChoice::Given => format!("Image {name}, set by the operator for all servers (`gameImage`)."),
        ImageChoice::SameJava => format!("Image {name}, chosen by `spec.imagePolicy: SameJava`."),
        ImageChoice::Keep => format!("Image {name}, kept by `spec.imagePolicy: Keep`."),
        ImageChoice::Newest | ImageChoice::Unknown => match chosen.has {
            Some(has) if has > chosen.java => {
                format!(
                    "Image {name}: the lowest published Java version from {} up. The server needs {needs}.",
                    chosen.java
                )
            }
            Some(_) | None => format!("Image {name}: the newest for {needs}."),
        },
    };
    page.line(&line);
    if let Some(was) = &chosen.instead_of {
        page.line(&format!("The running image is {}.", image_name(was)));
    }
    if let Some(held) = &chosen.held {
        page.line(&format!("{} is published and would be used with `spec.imagePolicy: Follow`.", image_name(held)));
    }
}

/// Without its digest, which no user compares.
fn image_name(image: &str) -> &str {
    image.split('@').next().unwrap_or(image)
}
