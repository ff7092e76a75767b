//! Pure. Checks that bytes are NBT before the library reads them, because plugins write such files: the library panics at a list of ends, and nesting
//! without a limit overflows the stack.

/// Minecraft's own limit.
const MAX_DEPTH: u32 = 512;

const CUT_OFF: &str = "it ends in the middle of a value";

/// Checks the first value. Bytes after it are ignored.
pub(super) fn check(bytes: &[u8]) -> Result<(), &'static str> {
    let mut reader = Reader { rest: bytes };
    match reader.tag()? {
        10 => reader.name().and_then(|()| reader.value(10, 0)),
        _ => Err("it does not begin with a compound"),
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn skip(&mut self, count: usize) -> Result<(), &'static str> {
        self.rest = self.rest.get(count..).ok_or(CUT_OFF)?;
        Ok(())
    }

    fn tag(&mut self) -> Result<u8, &'static str> {
        let (tag, rest) = self.rest.split_first().ok_or(CUT_OFF)?;
        self.rest = rest;
        Ok(*tag)
    }

    fn name(&mut self) -> Result<(), &'static str> {
        let (length, rest) = self.rest.split_first_chunk().ok_or(CUT_OFF)?;
        self.rest = rest;
        self.skip(u16::from_be_bytes(*length).into())
    }

    fn length(&mut self) -> Result<usize, &'static str> {
        let (length, rest) = self.rest.split_first_chunk().ok_or(CUT_OFF)?;
        self.rest = rest;
        usize::try_from(i32::from_be_bytes(*length)).map_err(|_| "a length is negative")
    }

    fn array(&mut self, size: usize) -> Result<(), &'static str> {
        let length = self.length()?;
        self.skip(length.saturating_mul(size))
    }

    fn value(&mut self, tag: u8, depth: u32) -> Result<(), &'static str> {
        if depth > MAX_DEPTH {
            return Err("it is nested too deeply");
        }
        match tag {
            1 => self.skip(1),
            2 => self.skip(2),
            3 | 5 => self.skip(4),
            4 | 6 => self.skip(8),
            7 => self.array(1),
            8 => self.name(),
            9 => self.list(depth),
            10 => loop {
                match self.tag()? {
                    0 => return Ok(()),
                    tag => self.name().and_then(|()| self.value(tag, depth + 1))?,
                }
            },
            11 => self.array(4),
            12 => self.array(8),
            _ => Err("it has a value of an unknown kind"),
        }
    }

    fn list(&mut self, depth: u32) -> Result<(), &'static str> {
        let (tag, length) = (self.tag()?, self.length()?);
        if tag == 0 && length > 0 {
            return Err("it has a list of ends");
        }
        (0..length).try_for_each(|_| self.value(tag, depth + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A compound with the entry `a` of this kind.
    fn compound(tag: u8, payload: &[u8]) -> Vec<u8> {
        [&[10, 0, 0, tag, 0, 1, b'a'], payload, &[0]].concat()
    }

    #[test]
    fn values_of_each_kind_pass_and_cut_ones_fail() {
        let lists = [9, 0, 0, 0, 1, 8, 0, 0, 0, 1, 0, 1, b'x'];
        let values: [(u8, &[u8]); 9] = [
            (1, &[7]),
            (3, &[0; 4]),
            (6, &[0; 8]),
            (7, &[0, 0, 0, 1, 5]),
            (8, &[0, 1, b'x']),
            (9, &lists),
            (9, &[0, 0, 0, 0, 0]),
            (10, &[0]),
            (12, &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
        ];
        for (tag, payload) in values {
            let whole = compound(tag, payload);
            assert_eq!(check(&whole), Ok(()), "{tag}");
            for end in 0..whole.len() {
                assert_eq!(check(&whole[..end]), Err(CUT_OFF), "{tag}");
            }
        }
    }

    #[test]
    fn list_of_ends_and_deep_nesting_are_refused() {
        assert_eq!(check(&compound(9, &[0, 0, 0, 0, 1])), Err("it has a list of ends"));
        let deep = [9, 0, 0, 0, 1].repeat(1_000_000);
        assert_eq!(check(&compound(9, &deep)), Err("it is nested too deeply"));
        assert_eq!(check(&compound(7, &[0xff; 4])), Err("a length is negative"));
        assert_eq!(check(&compound(13, &[])), Err("it has a value of an unknown kind"));
    }
}
