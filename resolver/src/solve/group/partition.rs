//! Pure. Partitions the servers into groups that are solved together.

use std::collections::BTreeMap;

use crate::model::request::{Request, VersionRequest};
use crate::model::software::Software;

/// Returns the servers that have to be solved together, as positions in `requests`. These are servers that share a
/// Plugin object with strategy `latest`, directly or through others. A change affects only the results of its own
/// group.
///
/// Each group is in the order of the server names, and the groups are in the order of their first server. The order of
/// `requests` does not matter. Objects of different namespaces (the part before the `/` of a server name) are never
/// shared. Servers of different software are never grouped either, because they load different files.
pub fn groups(requests: &[Request]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by(|&a, &b| requests[a].server.cmp(&requests[b].server));
    let mut group_of: Vec<usize> = (0..requests.len()).collect();
    let mut groups: Vec<Vec<usize>> = (0..requests.len()).map(|position| vec![position]).collect();
    let mut first: BTreeMap<(&str, Software, &str), usize> = BTreeMap::new();
    for &position in &order {
        let (namespace, software) = (namespace(&requests[position].server), requests[position].software);
        let latest =
            requests[position].plugins.iter().filter(|plugin_request| plugin_request.version == VersionRequest::Latest);
        for object in latest.map(|plugin_request| plugin_request.object.as_str()) {
            let (one, other) =
                (group_of[*first.entry((namespace, software, object)).or_insert(position)], group_of[position]);
            if one == other {
                continue;
            }
            // The smaller group is merged into the larger one, so that a fleet of thousands stays cheap.
            let (from, into) = if groups[one].len() < groups[other].len() { (one, other) } else { (other, one) };
            let moved = std::mem::take(&mut groups[from]);
            for &position in &moved {
                group_of[position] = into;
            }
            groups[into].extend(moved);
        }
    }
    groups.retain(|group| !group.is_empty());
    let by_name = |a: &usize, b: &usize| requests[*a].server.cmp(&requests[*b].server).then(a.cmp(b));
    for group in &mut groups {
        group.sort_by(by_name);
    }
    groups.sort_by(|a, b| by_name(&a[0], &b[0]));
    groups
}

/// `games` of `games/lobby`. Empty for a name without a namespace.
pub fn namespace(server: &str) -> &str {
    server.rsplit_once('/').map_or("", |(namespace, _)| namespace)
}
