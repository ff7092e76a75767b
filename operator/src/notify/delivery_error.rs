//! Pure. Why a channel could not be told. The address is not in it: whoever reads an Event may not write to the channel.

use super::channel::{Channel, ChannelOwner};

/// Why a channel could not be told. A closed set, and no part of the address: what a connection or a receiver says may
/// repeat it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeliveryError {
    /// There is no such Secret.
    SecretMissing,
    /// It has no such key.
    KeyMissing,
    /// What stands there is no URL with a host.
    NotAnAddress,
    /// Plain http, to a host that nobody has allowed.
    NotHttps,
    /// A private network, which nobody has allowed.
    Inside,
    /// It redirects; who may follow is not known.
    Moved(u16),
    /// It answers, and not that it took the message.
    Status(u16),
    /// No answer in time.
    TimedOut,
    /// No connection: name, network, certificate.
    Unreachable,
}

impl DeliveryError {
    /// Why, in one word of a closed set, for a condition.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::SecretMissing | Self::KeyMissing => "SecretMissing",
            Self::NotAnAddress | Self::NotHttps | Self::Inside => "AddressRefused",
            Self::Moved(_) | Self::Status(_) | Self::TimedOut | Self::Unreachable => "NotDelivered",
        }
    }

    /// The receiver will not have this message: another try brings it the same one.
    pub(crate) fn is_of_the_message(&self) -> bool {
        matches!(self, Self::Status(400 | 413 | 422))
    }

    /// Only a person can mend it, so there is no hurry to try again.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::Status(code) => (400..500).contains(code) && !matches!(code, 408 | 425 | 429),
            Self::TimedOut | Self::Unreachable => false,
            Self::Moved(_)
            | Self::SecretMissing
            | Self::KeyMissing
            | Self::NotAnAddress
            | Self::NotHttps
            | Self::Inside => true,
        }
    }

    /// The Secret does not hold an address that may be used. A name that leads inside shows only when it is looked up.
    pub(crate) fn is_of_the_secret(&self) -> bool {
        match self {
            Self::SecretMissing | Self::KeyMissing | Self::NotAnAddress | Self::NotHttps => true,
            Self::Inside | Self::Moved(_) | Self::Status(_) | Self::TimedOut | Self::Unreachable => false,
        }
    }

    /// The place, what is wrong there, and what to do.
    pub(crate) fn in_words(&self, channel: &Channel) -> String {
        let Channel { whose, name, namespace, written } = channel;
        let (kind, secret) = (written.kind, &written.secret);
        // Where it is somebody else's Secret, and who can mend it.
        let (of_namespace, by_whom) = match whose {
            ChannelOwner::Server => (String::new(), ""),
            ChannelOwner::Cluster => {
                (format!(" in namespace `{namespace}`"), ", for whoever installed the operator to mend")
            }
        };
        let place = format!("key `{}` of Secret `{}`{of_namespace}", secret.key, secret.name);
        let why = match self {
            Self::SecretMissing => {
                format!(
                    "there is no Secret `{}`{of_namespace}: make it, with the webhook's address at key `{}`",
                    secret.name, secret.key
                )
            }
            Self::KeyMissing => {
                format!(
                    "Secret `{}`{of_namespace} has no key `{}`: write the webhook's address there",
                    secret.name, secret.key
                )
            }
            Self::NotAnAddress => format!("{place} holds no address: write the whole URL of the webhook there"),
            Self::NotHttps => format!(
                "{place} holds an address without https: use https, or name its scheme, host and port in the operator's `notify.origins`"
            ),
            Self::Inside => format!(
                "{place} leads into a private network: name its scheme, host and port in the operator's `notify.origins` if that is meant"
            ),
            Self::Moved(code) => {
                format!("it answers {code}, a redirect, and none is followed: write the final address at {place}")
            }
            Self::Status(code @ (401 | 403 | 404 | 410)) => {
                format!(
                    "it answers {code}: the webhook is gone or closed; make a new one and write its address at {place}"
                )
            }
            Self::Status(code @ (400 | 413 | 422)) => {
                format!(
                    "it answers {code} and does not take the message: check that `type: {}` fits the address at {place}",
                    kind.as_str()
                )
            }
            Self::Status(code) => {
                format!("it answers {code}: nothing to do unless it lasts; then check the address at {place}")
            }
            Self::TimedOut => {
                format!("it does not answer in time: check that the operator reaches the address at {place}")
            }
            Self::Unreachable => {
                format!("there is no connection: check the network, and the host in the address at {place}")
            }
        };
        format!("channel `{name}` ({}{by_whom}): {why}", kind.as_str())
    }
}
