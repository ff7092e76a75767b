//! Edge (writes). Creates the HTTP clients for upstreams, downloads and notifications.

use std::time::Duration;

use reqwest::{Client, ClientBuilder};

/// Timeout of the connection setup.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The HTTP client could not be created.
#[derive(Debug, thiserror::Error)]
#[error("could not make an HTTP client")]
pub struct ClientError(#[source] reqwest::Error);

impl ClientError {
    /// The error of the HTTP library.
    pub fn into_source(self) -> reqwest::Error {
        self.0
    }
}

/// Creates a client with our `User-Agent` (`contact`: a mail address or page of the admin), configured further by
/// `more`. This is the only place where the process installs its crypto provider.
pub fn client(contact: Option<&str>, more: impl Fn(ClientBuilder) -> ClientBuilder) -> Result<Client, ClientError> {
    // Fails when a provider is installed already. That is fine, because kube uses the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || more(Client::builder().user_agent(user_agent(contact)).connect_timeout(CONNECT_TIMEOUT));
    let client = builder().build().or_else(|error| {
        // The usual cause is an image without CA certificates. A mirror over http works without them, and https fails
        // with a clear error.
        tracing::warn!(
            error = &error as &(dyn std::error::Error + 'static),
            "no CA certificates: https upstreams will fail"
        );
        builder().tls_certs_only([]).build()
    });
    client.map_err(ClientError)
}

/// Product, project page and contact. Fill and Modrinth reject clients that do not send them.
fn user_agent(contact: Option<&str>) -> String {
    let contact: String =
        contact.into_iter().flat_map(str::chars).filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
    let more = if contact.is_empty() { String::new() } else { format!("; {contact}") };
    format!("nightshift/{} (+https://github.com/nightshift-mc/nightshift{more})", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_agent_names_contact_and_cannot_break_header() {
        let plain = user_agent(None);
        assert!(
            plain.starts_with("nightshift/") && plain.ends_with(" (+https://github.com/nightshift-mc/nightshift)"),
            "{plain}"
        );
        let with = user_agent(Some("ops@example.org\r\nX: y"));
        assert!(with.ends_with("; ops@example.orgX: y)"), "{with}");
    }
}
