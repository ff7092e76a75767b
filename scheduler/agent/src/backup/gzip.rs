//! Edge (writes). Writes a gzip stream that is hardly larger than its content, whatever the content is.
//!
//! Most of a world is compressed already (region files, JARs). A fast compressor makes such content 5 % larger, and the room of a backup is checked
//! before it is taken. So each part is compressed by itself, and is stored as it is if compression does not make it smaller. Every tool reads the
//! result as one gzip stream.

use std::io::{self, Write};

use flate2::{Compress, Compression, Crc, FlushCompress};

/// A gzip header without a name and a time.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// The last part: empty and stored.
const LAST_PART: [u8; 5] = [1, 0, 0, 0xff, 0xff];

/// The size of a part: the most that one stored block can hold. A stored part has [`LAST_PART`]'s 5 bytes more than its content.
const PART_BYTES: usize = 65_535;

/// How many parts are stored without an attempt after one that compression did not make smaller. Attempts cost downtime, and the parts of a region
/// file are alike.
const UNTRIED_PARTS: u32 = 7;

/// Compresses what is written to it. [`Self::finish`] completes the stream.
pub(super) struct GzipWriter<W> {
    out: W,
    is_begun: bool,
    crc: Crc,
    deflate: Compress,
    part: Vec<u8>,
    compressed: Vec<u8>,
    /// How many of the next parts are stored without an attempt.
    untried: u32,
}

impl<W: Write> GzipWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            is_begun: false,
            crc: Crc::new(),
            deflate: Compress::new(Compression::fast(), false),
            part: Vec::with_capacity(PART_BYTES),
            compressed: Vec::with_capacity(PART_BYTES),
            untried: 0,
        }
    }

    /// Writes the end of the stream.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.begin()?;
        self.write_part()?;
        self.out.write_all(&LAST_PART)?;
        self.out.write_all(&self.crc.sum().to_le_bytes())?;
        self.out.write_all(&self.crc.amount().to_le_bytes())?;
        Ok(self.out)
    }

    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_begun, true) { Ok(()) } else { self.out.write_all(&HEADER) }
    }

    fn write_part(&mut self) -> io::Result<()> {
        if self.part.is_empty() {
            return Ok(());
        }
        self.begin()?;
        self.crc.update(&self.part);
        if self.is_compressed_smaller()? {
            self.out.write_all(&self.compressed)?;
        } else {
            let length = u16::try_from(self.part.len()).unwrap_or(u16::MAX);
            self.out.write_all(&[0])?;
            self.out.write_all(&length.to_le_bytes())?;
            self.out.write_all(&(!length).to_le_bytes())?;
            self.out.write_all(&self.part)?;
        }
        self.part.clear();
        Ok(())
    }

    /// Compresses the part, unless it is not worth an attempt. The result ends on a whole byte and refers to no other part.
    fn is_compressed_smaller(&mut self) -> io::Result<bool> {
        if let Some(untried) = self.untried.checked_sub(1) {
            self.untried = untried;
            return Ok(false);
        }
        self.deflate.reset();
        self.compressed.clear();
        // It writes no more than the buffer's capacity, and is incomplete if that is too little.
        self.deflate.compress_vec(&self.part, &mut self.compressed, FlushCompress::Sync)?;
        let is_whole = usize::try_from(self.deflate.total_in()).is_ok_and(|read| read == self.part.len());
        let is_smaller =
            is_whole && self.compressed.len() < self.part.len() && self.compressed.len() < self.compressed.capacity();
        if !is_smaller {
            self.untried = UNTRIED_PARTS;
        }
        Ok(is_smaller)
    }
}

impl<W: Write> Write for GzipWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PART_BYTES - self.part.len());
        self.part.extend_from_slice(&bytes[..taken]);
        if self.part.len() == PART_BYTES {
            self.write_part()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use agent_api::backup_size::space_for_backup;
    use flate2::read::GzDecoder;

    use super::*;

    fn compressed(content: &[u8]) -> Vec<u8> {
        let mut writer = GzipWriter::new(Vec::new());
        writer.write_all(content).unwrap();
        writer.finish().unwrap()
    }

    fn decompressed(stream: &[u8]) -> Vec<u8> {
        let (mut content, mut decoder) = (Vec::new(), GzDecoder::new(stream));
        decoder.read_to_end(&mut content).unwrap();
        assert!(decoder.into_inner().is_empty(), "it is one stream, which other tools read to its end");
        content
    }

    /// Bytes that no compressor makes smaller (xorshift).
    fn random(length: usize, mut seed: u64) -> Vec<u8> {
        let next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed.to_le_bytes()[0]
        };
        std::iter::repeat_with(next).take(length).collect()
    }

    #[test]
    fn incompressible_content_grows_by_less_than_room_check_allows() {
        for length in [0, 1, 100, 65_534, 65_535, 65_536, 200_000, 5_000_000] {
            let content = random(length, 0x9e37_79b9_7f4a_7c15);
            let stream = compressed(&content);
            assert_eq!(decompressed(&stream), content, "{length}");
            let bound = space_for_backup(length.try_into().unwrap(), 0);
            assert!(u64::try_from(stream.len()).unwrap() <= bound, "{length} became {}", stream.len());
            assert!(stream.len() <= length + length / 10_000 + 40, "{length} became {}", stream.len());
        }
    }

    #[test]
    fn compressible_content_becomes_smaller_also_between_other_content() {
        let zeros = vec![0; 3_000_000];
        assert!(compressed(&zeros).len() < 100_000);
        let text = "motd=A Minecraft Server\n".repeat(100_000).into_bytes();
        assert!(compressed(&text).len() < text.len() / 4);
        let mixed = [random(300_000, 7), text.clone(), random(70_000, 8), zeros, vec![1]].concat();
        let stream = compressed(&mixed);
        assert_eq!(decompressed(&stream), mixed);
        // The first parts of the text are stored without an attempt.
        assert!(stream.len() < 370_000 + 2 * 7 * 65_535 + 700_000, "{}", stream.len());
    }

    #[test]
    fn content_written_in_small_pieces_stays_the_same() {
        let content = [random(150_000, 5), b"level-name=world\n".repeat(20_000)].concat();
        let mut writer = GzipWriter::new(Vec::new());
        for piece in content.chunks(777) {
            writer.write_all(piece).unwrap();
        }
        assert_eq!(decompressed(&writer.finish().unwrap()), content);
    }
}
