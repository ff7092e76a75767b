//! Edge (reads). Validates packets between the socket and the `rcon` crate, and passes only packets that the crate can handle.
//!
//! The crate trusts a packet's length: a negative one ends the process, and a huge one allocates memory. It also requires strict UTF-8, which old
//! servers and cut surrogate pairs violate. So this module reads whole packets, checks their length, and replaces broken text.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The length field of an empty packet: id, type and two zero bytes.
const MIN_LENGTH: usize = 10;
/// 4096 UTF-16 units of at most 3 bytes each. The largest observed packet had 12298.
const MAX_LENGTH: usize = 4 + 4 + 3 * 4096 + 2;

/// A stream whose incoming packets are validated and whose outgoing data is unchanged.
#[derive(Debug)]
pub(crate) struct PacketGuard<S> {
    inner: S,
    /// The bytes of an incomplete packet.
    raw: Vec<u8>,
    /// A validated packet, and how much of it was already returned.
    ready: Vec<u8>,
    returned: usize,
}

impl<S> PacketGuard<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, raw: Vec::new(), ready: Vec::new(), returned: 0 }
    }

    /// Moves one whole packet from `raw` to `ready`, if one is complete.
    fn take_packet(&mut self) -> io::Result<bool> {
        let Some(length) = self.raw.first_chunk::<4>() else { return Ok(false) };
        let length = usize::try_from(i32::from_le_bytes(*length)).unwrap_or(0);
        if !(MIN_LENGTH..=MAX_LENGTH).contains(&length) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "this is not an RCON packet"));
        }
        if self.raw.len() < 4 + length {
            return Ok(false);
        }
        let packet: Vec<u8> = self.raw.drain(..4 + length).collect();
        let (head, body) = (&packet[4..12], &packet[12..4 + length - 2]);
        let body = String::from_utf8_lossy(body);
        let length = i32::try_from(MIN_LENGTH + body.len()).expect("its length is at most three times the limit");
        self.ready = [&length.to_le_bytes(), head, body.as_bytes(), &[0, 0]].concat();
        self.returned = 0;
        Ok(true)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PacketGuard<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.returned == self.ready.len() {
            if self.take_packet()? {
                break;
            }
            let mut bytes = [0; 4096];
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.raw.extend_from_slice(buffer.filled());
        }
        let rest = &self.ready[self.returned..];
        let count = rest.len().min(out.remaining());
        out.put_slice(&rest[..count]);
        self.returned += count;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PacketGuard<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::AsyncReadExt;

    use super::*;

    fn packet(body: &[u8]) -> Vec<u8> {
        let length = i32::try_from(10 + body.len()).unwrap();
        [&length.to_le_bytes()[..], &[1, 0, 0, 0], &[0, 0, 0, 0], body, &[0, 0]].concat()
    }

    fn pass_through(pieces: &[&[u8]]) -> io::Result<Vec<u8>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut received = Vec::new();
            let (near, mut far) = tokio::io::duplex(64);
            let mut guard = PacketGuard::new(near);
            let write = async move {
                for piece in pieces {
                    if tokio::io::AsyncWriteExt::write_all(&mut far, piece).await.is_err() {
                        return;
                    }
                }
            };
            let (read, ()) = tokio::join!(
                async {
                    let result = guard.read_to_end(&mut received).await;
                    drop(guard);
                    result
                },
                write
            );
            read.map(|_| received)
        })
    }

    #[test]
    fn latin_1_section_sign_is_replaced_and_length_corrected() {
        let out = pass_through(&[&packet(b"\xa7cUnknown command")]).unwrap();
        assert_eq!(out, packet("\u{fffd}cUnknown command".as_bytes()));
    }

    #[test]
    fn oversized_frame_length_is_refused_and_not_allocated() {
        for length in [-1_i32, 0, 9, 12_299, i32::MAX, i32::MIN] {
            let error = pass_through(&[&length.to_le_bytes(), b"xxxxxxxxxxxx"]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{length}");
        }
    }

    proptest! {
        #[test]
        fn packets_survive_any_fragmentation_of_the_stream(
            bodies in prop::collection::vec("[a-zé§☃]{0,80}", 1..5), cut in 1_usize..50
        ) {
            let bytes: Vec<u8> = bodies.iter().flat_map(|body| packet(body.as_bytes())).collect();
            let pieces: Vec<&[u8]> = bytes.chunks(cut).collect();
            prop_assert_eq!(pass_through(&pieces).unwrap(), bytes);
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = pass_through(&[&bytes]);
        }
    }
}
