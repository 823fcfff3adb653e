use super::*;
use std::os::unix::fs::symlink;

/// Two roots of the same directory: one opens with `openat2`, the other walks the path.
fn roots(dir: &Path) -> [Root; 2] {
    let root = || Root::open(dir).unwrap();
    [root(), Root { walks: AtomicBool::new(true), ..root() }]
}

#[test]
fn both_ways_open_the_same_and_refuse_the_same() {
    let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
    std::fs::write(dir.path().join("a/b/file"), b"x").unwrap();
    std::fs::write(outside.path().join("file"), b"y").unwrap();
    symlink(outside.path(), dir.path().join("a/out")).unwrap();
    symlink("b", dir.path().join("a/in")).unwrap();
    symlink("file", dir.path().join("a/b/link")).unwrap();
    let cases: [(&[u8], std::result::Result<(), Errno>); 9] = [
        (b"a/b/file", Ok(())),
        (b"a/b", Ok(())),
        (b"a/b/none", Err(Errno::NOENT)),
        (b"a/none/file", Err(Errno::NOENT)),
        (b"a/b/link", Err(Errno::LOOP)),
        (b"a/out/file", Err(Errno::LOOP)),
        (b"a/in/file", Err(Errno::LOOP)),
        (b"a/b/file/x", Err(Errno::NOTDIR)),
        (b"../x", Err(Errno::XDEV)),
    ];
    for (path, expected) in cases {
        for root in roots(dir.path()) {
            let found = root.open_at(path, OFlags::RDONLY, Mode::empty()).map(drop);
            assert_eq!(found, expected, "{} {:?}", path.escape_ascii(), root.walks);
        }
    }
}

#[test]
fn makes_directories_beneath_only() {
    for way in 0..2 {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(outside.path(), dir.path().join("out")).unwrap();
        std::fs::write(dir.path().join("file"), b"x").unwrap();
        let root = &roots(dir.path())[way];
        for made in [true, false] {
            for path in [b"a".as_slice(), b"a/b", b"a/b/c"] {
                assert_eq!(root.make_directory(path, Mode::RWXU), Ok(made));
            }
        }
        for (path, errno) in [
            (b"out".as_slice(), Errno::LOOP),
            (b"out/a", Errno::LOOP),
            (b"file", Errno::NOTDIR),
            (b"file/a", Errno::NOTDIR),
        ] {
            assert_eq!(root.make_directory(path, Mode::RWXU), Err(errno));
        }
        assert_eq!(root.remove_directory(b"a/b"), Ok(false));
        assert_eq!(root.remove_directory(b"a/b/c"), Ok(true));
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}

#[test]
fn times_before_1970_and_out_of_range() {
    let dir = tempfile::tempdir().unwrap();
    let mut stat = fs::stat(dir.path()).unwrap();
    (stat.st_mtime, stat.st_mtime_nsec) = (-1, 999_999_999);
    assert_eq!(mtime_of(&stat), -1);
    stat.st_mtime = i64::MAX;
    assert_eq!(mtime_of(&stat), i64::MAX);
    stat.st_mtime = i64::MIN;
    assert_eq!(mtime_of(&stat), i64::MIN);
}
