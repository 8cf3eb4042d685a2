//! NumPy's array format, version 1.0: as much of it as fit files hold. Little-endian, row by row.

/// Numbers that an array can hold.
pub trait Item: Copy {
    /// NumPy's name of the type.
    const DESCR: &'static str;
    /// Bytes of one number.
    const N_BYTES: usize;
    /// Appends the number.
    fn write(self, out: &mut Vec<u8>);
    /// The number in these bytes, [`Item::N_BYTES`] of them.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! item {
    ($type:ty, $descr:literal) => {
        impl Item for $type {
            const DESCR: &'static str = $descr;
            const N_BYTES: usize = size_of::<$type>();
            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn read(bytes: &[u8]) -> Self {
                <$type>::from_le_bytes(bytes.try_into().expect("as many bytes as the type has"))
            }
        }
    };
}

item!(f64, "<f8");
item!(u32, "<u4");
item!(u64, "<u8");

/// An array of `shape`, as `numpy.save` writes it.
pub fn encode<T: Item>(shape: &[usize], items: impl IntoIterator<Item = T>) -> Vec<u8> {
    let mut bytes = header(T::DESCR, shape);
    bytes.reserve(shape.iter().product::<usize>() * T::N_BYTES);
    items.into_iter().for_each(|item| item.write(&mut bytes));
    bytes
}

/// A list of texts, as `numpy.save` writes a list of strings.
pub fn encode_text(texts: &[&str]) -> Vec<u8> {
    let width = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(1);
    let mut bytes = header(&format!("<U{width}"), &[texts.len()]);
    for text in texts {
        let characters = text.chars().map(u32::from).chain(std::iter::repeat(0)).take(width);
        characters.for_each(|character| character.write(&mut bytes));
    }
    bytes
}

/// Shape and numbers of an array of type `T`, or what is wrong with it. Memory follows the bytes that are there, whatever
/// the header says.
pub fn decode<T: Item>(bytes: &[u8]) -> Result<(Vec<usize>, Vec<T>), String> {
    let n_header = match bytes.get(8..10) {
        Some(&[low, high]) => 10 + usize::from(u16::from_le_bytes([low, high])),
        _ => return Err("is too short for an array".into()),
    };
    let (head, data) = bytes.split_at_checked(n_header).ok_or("ends within its header")?;
    let text = std::str::from_utf8(&head[10..]).map_err(|_| "has a header that is no text")?;
    let inner = text.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(')')).ok_or("names no shape")?.0;
    let axes = inner.split(',').map(str::trim).filter(|axis| !axis.is_empty());
    let shape: Vec<usize> =
        axes.map(|axis| axis.parse().map_err(|_| "has no whole shape")).collect::<Result<_, _>>()?;
    if head != header(T::DESCR, &shape) {
        return Err(format!("is no array of {} in NumPy's format 1.0, row by row", T::DESCR));
    }
    let n_items = shape.iter().try_fold(1usize, |product, &axis| product.checked_mul(axis));
    if n_items.and_then(|n| n.checked_mul(T::N_BYTES)) != Some(data.len()) {
        return Err("does not hold as many numbers as its shape says".into());
    }
    Ok((shape, data.chunks_exact(T::N_BYTES).map(T::read).collect()))
}

/// What an array of `shape` and type `descr` begins with.
pub fn header(descr: &str, shape: &[usize]) -> Vec<u8> {
    let axes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let shape = if let [axis] = &axes[..] { format!("({axis},)") } else { format!("({})", axes.join(", ")) };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // Data begin at a multiple of 64 bytes; ten of them come before this text, and a line break ends it.
    let n_blanks = 63 - (10 + text.len()) % 64;
    text.extend(std::iter::repeat_n(' ', n_blanks));
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_come_back() {
        for shape in [vec![], vec![6], vec![2, 3], vec![3, 0], vec![1, 2, 3]] {
            let n = shape.iter().product::<usize>();
            let items: Vec<f64> = (0..n).map(|ix| 0.1 + ix as f64).collect();
            let bytes = encode(&shape, items.iter().copied());
            assert_eq!((bytes.len() - n * 8) % 64, 0);
            assert_eq!(decode::<f64>(&bytes).unwrap(), (shape.clone(), items));
            assert!(decode::<u64>(&bytes).is_err() && decode::<u32>(&bytes).is_err());
            for cut in 0..bytes.len() {
                assert!(decode::<f64>(&bytes[..cut]).is_err(), "{shape:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn a_header_that_promises_too_much_takes_no_memory() {
        for shape in ["(9999999999999,)", "(18446744073709551615, 18446744073709551615)", "(-3,)", "(x,)", "(5"] {
            let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
            let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
            bytes.extend(format!("{text:<117}\n").bytes());
            assert!(decode::<f64>(&bytes).is_err(), "{shape}");
        }
    }
}
