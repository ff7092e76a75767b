//! Pure. Decides whether the rejection of a pull pod by the API server concerns its images.

use kube::core::Status;

/// Parts of rejections that apply to any pod, whatever its images are. The server's own pod has passed all of these checks:
///
/// - a quota
/// - a `LimitRange` of a minimum, a maximum or a ratio
/// - the Pod Security Standards
/// - the tolerations of a namespace
/// - a missing right
const POD_REJECTION_PARTS: [&str; 7] = [
    "exceeded quota: ",
    "failed quota: ",
    " usage per ",
    " max limit to request ratio per ",
    "violates PodSecurity ",
    "pod tolerations (possibly merged with namespace default tolerations) conflict with",
    "cannot create resource \"pods\"",
];

/// Prefix of a rejection by a webhook. A webhook may check images, and would reject the server's own pod as well.
const WEBHOOK_PREFIX: &str = "admission webhook ";

/// Whether the rejection is independent of the image. Unknown rejections do not count: if they concern the image, the next pod would be
/// rejected, too, and the server would stay down.
pub(super) fn is_image_independent(refusal: &Status) -> bool {
    let message = &refusal.message;
    refusal.code == 403
        && !message.contains(WEBHOOK_PREFIX)
        && POD_REJECTION_PARTS.iter().any(|part| message.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_independent(code: u16, message: &str) -> bool {
        let status = serde_json::json!({"status": "Failure", "code": code, "reason": "", "message": message});
        is_image_independent(&serde_json::from_value(status).unwrap())
    }

    #[test]
    fn rejection_by_quota_or_policy_is_inconclusive() {
        for message in [
            r#"pods "lobby-images" is forbidden: exceeded quota: games, requested: pods=1, used: pods=4, limited: pods=4"#,
            r#"pods "lobby-images" is forbidden: failed quota: games: must specify limits.ephemeral-storage for: image-0"#,
            r#"pods "lobby-images" is forbidden: minimum memory usage per Container is 128Mi, but request is 32Mi"#,
            r#"pods "lobby-images" is forbidden: [maximum cpu usage per Pod is 10m, but limit is 20m, maximum memory usage per Pod is 1Mi, but limit is 32Mi]"#,
            r#"pods "lobby-images" is forbidden: cpu max limit to request ratio per Container is 4, but provided ratio is 5.000000"#,
            r#"pods "lobby-images" is forbidden: violates PodSecurity "restricted:latest": seccompProfile (pod must not set it)"#,
            r#"pods "lobby-images" is forbidden: pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist"#,
            r#"pods is forbidden: User "system:serviceaccount:n:nightshift" cannot create resource "pods" in API group "" in the namespace "games""#,
        ] {
            assert!(is_independent(403, message), "{message}");
        }
    }

    #[test]
    fn rejection_that_may_concern_image_is_kept_as_failure() {
        for (code, message) in [
            (403, r#"admission webhook "policy.sigstore.dev" denied the request: no matching signatures"#),
            (403, r#"admission webhook "a" denied the request: violates PodSecurity "x": y; image z is not signed"#),
            (
                403,
                r#"pods "lobby-images" is forbidden: error looking up service account games/games: serviceaccount "games" not found"#,
            ),
            (
                403,
                r#"pods "lobby-images" is forbidden: unable to create new content in namespace games because it is being terminated"#,
            ),
            (
                403,
                r#"pods "lobby-images" is forbidden: image policy webhook backend denied one or more images: not allowed"#,
            ),
            (500, "etcdserver: leader changed; exceeded quota: "),
            (422, r#"Pod "lobby-images" is invalid: spec.containers[0].image: Required value"#),
        ] {
            assert!(!is_independent(code, message), "{message}");
        }
    }
}
