//! Pure. Lists the errors of a delivery, without the webhook's address. A user who may read an Event may not be allowed
//! to write to the channel.

use super::channel::{Channel, ChannelOwner};
use crate::k8s::labels::allow_use_command;

/// Why a notification could not be delivered. The set is closed and contains no part of the address, because texts from
/// a connection or a receiver may repeat it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeliveryError {
    /// The Secret does not exist.
    SecretMissing,
    /// It has no label that allows its use.
    NotAllowed,
    /// It has no such key.
    KeyMissing,
    /// The value is not a URL with a host.
    NotAnAddress,
    /// Plain http, to a host that is not in the allowed origins.
    NotHttps,
    /// A private network that is not in the allowed origins.
    PrivateAddress,
    /// A redirect. It is not followed, because its target is not checked.
    Redirected(u16),
    /// A reply that does not accept the message.
    Status(u16),
    /// No reply in time.
    TimedOut,
    /// No connection: name, network, certificate.
    Unreachable,
}

impl DeliveryError {
    /// The reason for a condition, from a closed set.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::SecretMissing | Self::KeyMissing => "SecretMissing",
            Self::NotAllowed => "SecretNotAllowed",
            Self::NotAnAddress | Self::NotHttps | Self::PrivateAddress => "AddressRefused",
            Self::Redirected(_) | Self::Status(_) | Self::TimedOut | Self::Unreachable => "NotDelivered",
        }
    }

    /// The receiver refuses this message, so another attempt cannot succeed.
    pub(crate) fn is_message_rejected(&self) -> bool {
        matches!(self, Self::Status(400 | 413 | 422))
    }

    /// Only a user can fix it, so another attempt can wait.
    pub(crate) fn is_persistent(&self) -> bool {
        match self {
            Self::Status(code) => (400..500).contains(code) && !matches!(code, 408 | 425 | 429),
            Self::TimedOut | Self::Unreachable => false,
            Self::Redirected(_)
            | Self::SecretMissing
            | Self::NotAllowed
            | Self::KeyMissing
            | Self::NotAnAddress
            | Self::NotHttps
            | Self::PrivateAddress => true,
        }
    }

    /// The Secret does not contain a usable address. A host name that resolves to a private network is detected only by
    /// the lookup.
    pub(crate) fn is_secret_error(&self) -> bool {
        match self {
            Self::SecretMissing | Self::NotAllowed | Self::KeyMissing | Self::NotAnAddress | Self::NotHttps => true,
            Self::PrivateAddress | Self::Redirected(_) | Self::Status(_) | Self::TimedOut | Self::Unreachable => false,
        }
    }

    /// The channel, the error there, and the action that fixes it.
    pub(crate) fn message(&self, channel: &Channel) -> String {
        let Channel { owner, name, namespace, config } = channel;
        let (kind, secret) = (config.kind, &config.secret);
        // For a cluster channel, the text names the namespace and who can fix it.
        let (of_namespace, responsible) = match owner {
            ChannelOwner::Server => (String::new(), ""),
            ChannelOwner::Cluster => {
                (format!(" in namespace `{namespace}`"), ", to be fixed by the admin of the operator")
            }
        };
        let location = format!("key `{}` of Secret `{}`{of_namespace}", secret.key, secret.name);
        let why = match self {
            Self::SecretMissing => {
                format!(
                    "there is no Secret `{}`{of_namespace}: create it, with the webhook's address at key `{}`",
                    secret.name, secret.key
                )
            }
            Self::NotAllowed => format!(
                "Secret `{}` does not allow its use by servers: its owner can allow it with `{}`",
                secret.name,
                allow_use_command(namespace, &secret.name)
            ),
            Self::KeyMissing => {
                format!(
                    "Secret `{}`{of_namespace} has no key `{}`: write the webhook's address there",
                    secret.name, secret.key
                )
            }
            Self::NotAnAddress => format!("{location} is not an address: write the whole URL of the webhook there"),
            Self::NotHttps => format!(
                "{location} is an address without https: use https, or name its scheme, host and port in the \
                operator's `notify.origins`"
            ),
            Self::PrivateAddress => format!(
                "{location} leads into a private network: if that is intended, name its scheme, host and port in the \
                operator's `notify.origins`"
            ),
            Self::Redirected(code) => {
                format!("it answers {code}, a redirect, which is not followed: write the final address at {location}")
            }
            Self::Status(code @ (401 | 403 | 404 | 410)) => {
                format!(
                    "it answers {code}, because the webhook was deleted or closed: create a new one and write its \
                    address at {location}"
                )
            }
            Self::Status(code @ (400 | 413 | 422)) => {
                format!(
                    "it answers {code} and rejects the message: check that `type: {}` fits the address at {location}",
                    kind.as_str()
                )
            }
            Self::Status(code) => {
                format!("it answers {code}: if that lasts, check the address at {location}")
            }
            Self::TimedOut => {
                format!("it does not answer in time: check that the operator can reach the address at {location}")
            }
            Self::Unreachable => {
                format!("there is no connection: check the network, and the host in the address at {location}")
            }
        };
        format!("channel `{name}` ({}{responsible}): {why}", kind.as_str())
    }
}
