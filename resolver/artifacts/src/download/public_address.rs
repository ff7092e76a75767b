//! Edge (reads). Restricts downloads to addresses in the public Internet.
//!
//! The URLs of files on a plugin's page are untrusted. Without this restriction, a link to a cloud's metadata service
//! or to a service in the cluster would be followed from inside the cluster.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The error if all addresses of a name are private. It is in the source chain of the client's error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotPublic(pub(super) String);

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no public address", self.0)
    }
}

impl std::error::Error for NotPublic {}

/// Resolves names with the system's resolver and keeps the public addresses. The connection uses exactly these, so a
/// later change of the name has no effect.
#[derive(Debug, Clone, Copy)]
pub struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(keep_public(&host, found)?)
        })
    }
}

/// The public ones of the addresses of a name.
pub(super) fn keep_public(host: &str, found: impl Iterator<Item = SocketAddr>) -> Result<Addrs, NotPublic> {
    let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
    if public.is_empty() { Err(NotPublic(host.to_owned())) } else { Ok(Box::new(public.into_iter())) }
}

/// Whether the host of a URL is a private IP address. Names are checked when they are resolved.
pub fn is_private_host(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse().is_ok_and(|address: IpAddr| !is_public(address))
}

/// Whether an address belongs to the public Internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// According to IANA's special-purpose registry. The clouds' metadata services (169.254.169.254, 100.100.100.200) are
/// in these ranges.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(a == 0
        || a == 10
        || a == 127
        || (a == 100 && (64..128).contains(&b))
        || (a == 169 && b == 254)
        || (a == 172 && (16..32).contains(&b))
        || (a == 192 && b == 168)
        || (a == 192 && b == 0 && (c == 0 || c == 2))
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b))
        || (a == 198 && b == 51 && c == 100)
        || (a == 203 && b == 0 && c == 113)
        || a >= 224)
}

/// Global unicast only. For an address that embeds an IPv4 address, that address decides.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let embedded = |high: u16, low: u16| is_public_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        // ::ffff:0:0/96, IPv4-mapped: the system connects to the IPv4 address. 64:ff9b::/96, NAT64. 2002::/16, 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            embedded(high, low)
        }
        // Protocol assignments with Teredo, and documentation.
        [0x2001, 0..0x200 | 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_not_public() {
        let inside = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "100.64.0.1",
            "100.100.100.200",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:0a00:0001::1",
            "2001::1",
            "2001:db8::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "fec0::1",
            "ff02::1",
            "3fff::1",
        ];
        for address in inside {
            assert!(!is_public(address.parse().unwrap()), "{address}");
            assert!(is_private_host(address), "{address}");
            assert!(is_private_host(&format!("[{address}]")), "{address}");
        }
    }

    #[test]
    fn internet_addresses_are_public() {
        let public = [
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.1",
            "104.16.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.3.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1",
            "2a00:1450::1",
            "2001:4860:4860::8888",
            "64:ff9b::1.1.1.1",
            "::ffff:1.1.1.1",
            "2002:0101:0101::1",
        ];
        for address in public {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        assert!(!is_private_host("example.org"), "names are checked when they are resolved");
    }

    #[tokio::test]
    async fn localhost_is_refused_by_public_resolver() {
        let refused = PublicOnly.resolve("localhost".parse().unwrap()).await.err().unwrap();
        assert_eq!(refused.downcast_ref(), Some(&NotPublic("localhost".to_owned())));
    }
}
