//! Pure. Renders the text of "why not this Paper version?".

use super::blockers::silent_blocker_table;
use super::builder::TextBuilder;
use super::hints;
use super::solved::shared_versions;
use crate::explanation::{PluginState, WhyNot};
use crate::render::phrases::{self, named, nearest_are, of_date, short_name};
use crate::render::short;

/// Writes the text.
pub(super) fn why_not(page: &mut TextBuilder, why: &WhyNot) {
    let server = short_name(&why.server);
    let (software, target) = (why.software, &why.target);
    let nearest: Vec<&str> = why.nearest.iter().map(crate::model::version::Minecraft::as_str).collect();
    if !why.exists {
        page.line(&format!("there is no {software} {target}{}", nearest_are(&nearest)));
        hints_section(page, why);
        return;
    }
    if why.possible {
        page.line(&format!("{server} can run {software} {target}: there are no blockers."));
        ready_table(page, &why.plugins);
        return;
    }
    let all = why.ready.len() + why.blockers.len();
    let ready = match (why.ready.len(), all) {
        (_, 0) => String::new(),
        (ready, all) if ready == all => ": every plugin is ready".to_owned(),
        (1, all) => format!(": 1 of {all} plugins is ready"),
        (ready, all) => format!(": {ready} of {all} plugins are ready"),
    };
    page.line(&format!("{server} cannot run {software} {target} yet{ready}"));
    if why.unreleased {
        page.line(&format!("  {software} {target}: there is no build of it yet, so this answer assumes one"));
    }
    if let Some(unusable) = &why.unusable {
        page.line(&format!("  {software} {target}: {}{}", phrases::unusable(unusable), nearest_are(&nearest)));
    }
    if let Some(pin) = &why.pinned {
        page.line(&format!("  you pinned {software} {} (`spec.version` on the server)", pin.version));
    }
    silent_blocker_table(page, &why.blockers, target);
    shared_versions(page, &why.shared_versions);
    if let Some(conflict) = &why.shared_name {
        let both = short::phrase(&conflict.name, &conflict.files);
        page.line(&format!("  {both}, and a server loads only one of them: remove one of them"));
    }
    ready_table(page, &why.plugins);
    hints_section(page, why);
}

fn hints_section(page: &mut TextBuilder, why: &WhyNot) {
    if let Some(nearest) = &why.nearest_possible {
        page.line(&format!("nearest available: {}", named(nearest)));
    }
    let hint_section =
        hints::HintSection { hints: &why.hints, more: why.more_hints, skipped: why.hints_left_out, waits: &why.waits };
    hints::section(page, &why.server, &hint_section);
}

/// The plugins that are ready, each with the release that is.
fn ready_table(page: &mut TextBuilder, plugins: &[PluginState]) {
    let row = |plugin: &PluginState| {
        let version = plugin.version.as_ref()?;
        Some((format!("{} {version}", plugin.name), vec![of_date(plugin.published)]))
    };
    let rows: Vec<_> = plugins.iter().filter_map(row).collect();
    if !rows.is_empty() {
        page.line("ready");
        page.table(&rows);
    }
}
