//! Pure. Represents the address of a webhook, which is a credential in the form of a URL.

use std::fmt;

use artifacts::download::is_private_host;
use reqwest::Url;

use super::delivery_error::DeliveryError;

/// The address of a webhook. It allows writing to the channel, so it has no printable form.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Webhook(Url);

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Webhook(…)")
    }
}

/// Which client may send a request there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientKind {
    /// The public Internet only.
    Public,
    /// Any address that an admin allowed.
    Trusted,
}

impl Webhook {
    /// Parses the value in the Secret, which usually ends with a line break.
    pub(crate) fn parse(text: &str) -> Result<Self, DeliveryError> {
        let url = Url::parse(text.trim()).map_err(|_| DeliveryError::NotAnAddress)?;
        let is_web = matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| !host.is_empty());
        if is_web { Ok(Self(url)) } else { Err(DeliveryError::NotAnAddress) }
    }

    /// Whether a request may be sent there. `origins` are those that an admin of the operator allows.
    pub(crate) fn client_kind(&self, origins: &[Url]) -> Result<ClientKind, DeliveryError> {
        if origins.iter().any(|allowed| allowed.origin() == self.0.origin()) {
            return Ok(ClientKind::Trusted);
        }
        if self.0.scheme() != "https" {
            return Err(DeliveryError::NotHttps);
        }
        if is_private_host(self.0.host_str().unwrap_or_default()) {
            return Err(DeliveryError::PrivateAddress);
        }
        Ok(ClientKind::Public)
    }

    /// For the request only.
    pub(super) fn url(&self) -> &Url {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_kind(address: &str) -> Result<ClientKind, DeliveryError> {
        let origins = ["http://mattermost.chat.svc:8065".parse().unwrap()];
        Webhook::parse(address)?.client_kind(&origins)
    }

    #[test]
    fn webhook_needs_https_or_allowed_origin() {
        assert_eq!(client_kind("https://discord.com/api/webhooks/1/t\n"), Ok(ClientKind::Public));
        assert_eq!(client_kind("http://discord.com/api/webhooks/1/t"), Err(DeliveryError::NotHttps));
        assert_eq!(client_kind("https://10.0.0.7/hooks/x"), Err(DeliveryError::PrivateAddress));
        assert_eq!(client_kind("https://[::1]:6443/api"), Err(DeliveryError::PrivateAddress));
        assert_eq!(client_kind("https://169.254.169.254/latest"), Err(DeliveryError::PrivateAddress));
        assert_eq!(client_kind("http://mattermost.chat.svc:8065/hooks/x"), Ok(ClientKind::Trusted));
        assert_eq!(
            client_kind("http://mattermost.chat.svc:8066/hooks/x"),
            Err(DeliveryError::NotHttps),
            "the port must match"
        );
        assert_eq!(
            client_kind("https://mattermost.chat.svc:8065/hooks/x"),
            Ok(ClientKind::Public),
            "another scheme: resolved first, and then refused"
        );
    }

    #[test]
    fn webhook_rejects_text_that_is_no_address() {
        for text in ["", "discord", "ftp://example.org/x", "https://", "file:///etc/passwd", "mailto:a@example.org"] {
            assert_eq!(Webhook::parse(text), Err(DeliveryError::NotAnAddress), "{text}");
        }
    }

    #[test]
    fn webhook_debug_output_hides_address() {
        let webhook = Webhook::parse("https://discord.com/api/webhooks/1/geheim").unwrap();
        assert_eq!(format!("{webhook:?}"), "Webhook(…)");
    }
}
