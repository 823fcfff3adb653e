use super::*;

/// Returns compressible bytes: numbers in words.
fn text(len: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(len + 32);
    let mut state = 1_u32;
    while text.len() < len {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.extend_from_slice(format!("position {} of {}\n", state >> 20, text.len()).as_bytes());
    }
    text.truncate(len);
    text
}

fn packed(content: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    let read = |group: &mut [u8], at: u64| {
        group.copy_from_slice(&content[at as usize..][..group.len()]);
        Ok::<_, io::Error>(())
    };
    pack(content.len() as u64, read, |frame| {
        frames.extend_from_slice(frame);
        Ok(())
    })
    .unwrap();
    frames
}

/// Decompresses `frames` to `size` bytes. Also returns the number of bytes that were handed out.
fn unpacked(frames: &[u8], size: usize) -> (Result<Vec<u8>, UnpackError>, usize) {
    use std::io::Write as _;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(frames).unwrap();
    let mut content = Vec::new();
    let done = unpack(&file.into(), frames.len() as u64, size as u64, |at, bytes| {
        assert_eq!(at, content.len() as u64);
        content.extend_from_slice(bytes);
        Ok(())
    });
    let given = content.len();
    (done.map(|()| content), given)
}

#[test]
fn what_is_compressed_comes_out_again() {
    for size in [1, 1000, GROUP_LEN - 1, GROUP_LEN, GROUP_LEN + 1, 2 * GROUP_LEN + 77] {
        let content = text(size);
        let frames = packed(&content);
        assert_eq!(frames.len() < size, size > 1, "{size} became {}", frames.len());
        assert!(unpacked(&frames, size).0.unwrap() == content, "{size}");
    }
    assert_eq!(packed(b""), b"");
}

#[test]
fn never_more_is_given_than_there_has_to_be() {
    // 64 MiB of zeros in some 6 kB.
    let bomb = packed(&vec![0; 64 << 20]);
    assert!(bomb.len() < 8192, "{}", bomb.len());
    for claimed in [1, 1000, GROUP_LEN, GROUP_LEN + 1, (64 << 20) - 1] {
        let (refused, given) = unpacked(&bomb, claimed);
        assert_eq!(refused, Err(UnpackError::Wrong), "{claimed}");
        assert!(given <= claimed, "{given} of {claimed}");
    }
    assert!(unpacked(&bomb, 64 << 20).0.is_ok());
}

#[test]
fn what_is_no_sequence_of_frames_is_wrong() {
    let content = text(GROUP_LEN + 5000);
    let frames = packed(&content);
    let wrong = |frames: &[u8]| assert_eq!(unpacked(frames, content.len()).0, Err(UnpackError::Wrong));
    for cut in [0, 1, 4, 1000, frames.len() - 1] {
        wrong(&frames[..cut]);
    }
    wrong(&[frames.as_slice(), b"x"].concat());
    wrong(&[b"x", frames.as_slice()].concat());
    wrong(&[frames.as_slice(), &packed(b"more")].concat());
    wrong(&content[..5000]);
    assert_eq!(unpacked(&frames, content.len() + 1).0, Err(UnpackError::Wrong));
}

#[test]
fn a_window_that_takes_more_memory_than_a_group_is_wrong() {
    use std::io::Write as _;
    let content = text(2 * GROUP_LEN);
    for (window_log, fits) in [(WINDOW_LOG, true), (WINDOW_LOG + 1, false)] {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(window_log).unwrap();
        encoder.write_all(&content).unwrap();
        let frame = encoder.finish().unwrap();
        assert_eq!(unpacked(&frame, content.len()).0.is_ok(), fits, "{window_log}");
    }
}

#[test]
fn what_cannot_be_read_or_written_is_not_called_wrong() {
    let frames = packed(&text(1000));
    let dir = tempfile::tempdir().unwrap();
    let directory =
        rustix::fs::open(dir.path(), rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    assert_eq!(unpack(&directory, 10, 1000, |_, _| Ok(())), Err(UnpackError::Read(Errno::ISDIR)));
    let file = tempfile::tempfile().unwrap();
    crate::transfer::write_at(&file, &frames, 0).unwrap();
    let full = unpack(&file.into(), frames.len() as u64, 1000, |_, _| Err(Errno::NOSPC));
    assert_eq!(full, Err(UnpackError::Write(Errno::NOSPC)));
}

#[test]
fn little_gain_does_not_pay() {
    assert!(pays(3200, 3060) && !pays(3200, 3061), "one part in 32, and the entry in the manifest");
    assert!(!pays(40, 1) && !pays(0, 0), "what its entry takes is more than it gains");
    assert!(pays(42, 1));
}
