//! Pure. Computes the JVM's heap from a container's memory.

use k8s_openapi::api::core::v1::ResourceRequirements;

use validate::{Heap, memory_quantity};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// The heap in MiB. `None` if no memory is set: the image's default (1 GiB) then applies.
///
/// A quarter of the memory, but at least 1 GiB, is left to the agent, the page cache and the JVM itself. The JVM needs it for metaspace,
/// threads and direct buffers. With a heap of the whole limit the kernel would kill the process. A container of under 2 GiB gets half.
pub(crate) fn heap_mib(heap: &Heap, resources: Option<&ResourceRequirements>) -> Option<u64> {
    match heap {
        Heap::Fixed { mib } => Some(*mib),
        Heap::Auto => {
            let resources = resources?;
            let memory = |of: &Option<std::collections::BTreeMap<String, _>>| {
                of.as_ref().and_then(|all| all.get("memory")).and_then(
                    |quantity: &k8s_openapi::apimachinery::pkg::api::resource::Quantity| {
                        memory_quantity::bytes(&quantity.0)
                    },
                )
            };
            let bytes = memory(&resources.limits).or_else(|| memory(&resources.requests))?;
            let reserved = (bytes / 4).max(GIB).min(bytes / 2);
            Some((bytes - reserved) / MIB)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(limit: Option<&str>, request: Option<&str>) -> ResourceRequirements {
        serde_json::from_value(serde_json::json!({
            "limits": limit.map(|memory| serde_json::json!({"memory": memory})),
            "requests": request.map(|memory| serde_json::json!({"memory": memory})),
        }))
        .unwrap()
    }

    #[test]
    fn heap_of_six_gib_pod_is_three_quarters() {
        assert_eq!(heap_mib(&Heap::Auto, Some(&resources(Some("6Gi"), None))), Some(4_608));
    }

    #[test]
    fn heap_prefers_limit_and_is_half_of_small_pods() {
        assert_eq!(heap_mib(&Heap::Auto, Some(&resources(Some("3Gi"), Some("1Gi")))), Some(2_048));
        assert_eq!(heap_mib(&Heap::Auto, Some(&resources(None, Some("1Gi")))), Some(512));
    }

    #[test]
    fn heap_is_left_to_image_without_memory_limit() {
        assert_eq!(heap_mib(&Heap::Auto, Some(&resources(None, None))), None);
        assert_eq!(heap_mib(&Heap::Auto, None), None);
        assert_eq!(heap_mib(&Heap::Fixed { mib: 100 }, Some(&resources(Some("6Gi"), None))), Some(100));
    }
}
