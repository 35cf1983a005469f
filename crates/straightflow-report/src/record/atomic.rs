//! Files that are replaced as a whole.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

const PREFIX: &str = ".straightflow-";

/// Whether the name is that of a temporary file of ours.
pub fn is_temporary(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// Removes the temporary files of a directory: what processes leave behind that are killed while they
/// write. Only for who knows that no other process writes there. It is no obstacle if that fails.
pub fn sweep(directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_temporary(&entry.file_name())) {
        let _ = std::fs::remove_file(entry.path());
    }
}

/// Fills a temporary file in the same directory, brings it to the disk and renames it to `path`. If
/// any of that fails, what was at `path` is unchanged and the temporary file is removed.
pub fn replace(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    filled(path, fill)?.persist(path)?;
    sync_directory(path)
}

/// Like [`replace`], but fails if there is something at `path` already.
pub fn create(path: &Path, text: &str) -> io::Result<()> {
    filled(path, |out| out.write_all(text.as_bytes()))?.persist_noclobber(path)?;
    sync_directory(path)
}

/// Removes a file, and is done when that is on the disk.
pub fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)?;
    sync_directory(path)
}

fn filled(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX);
    // By default only the user can read a temporary file; what it becomes follows the umask.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = builder.tempfile_in(directory(path));
    let mut file = file.map_err(without_temporary_name)?;
    fill(file.as_file_mut())?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// The operating system's reason alone: the name of a file that nobody asked for would only confuse.
fn without_temporary_name(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((reason, _)) => io::Error::new(error.kind(), reason),
        None => error,
    }
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A rename is on the disk when the directory is.
fn sync_directory(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(directory(path))?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};

    use super::*;

    /// A disk that becomes full in the middle.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("summary.json");
        fs::write(&path, "old").expect("written");
        let result = replace(&path, |out| {
            out.write_all(b"half of the new")?;
            let mut full = OpenOptions::new().write(true).open("/dev/full")?;
            full.write_all(b"the rest")
        });
        let error = result.expect_err("the disk is full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).expect("the old file"), "old");
        assert_eq!(fs::read_dir(&directory).expect("entries").count(), 1);
    }

    #[test]
    fn errors_do_not_name_the_temporary_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("missing").join("file");
        let error = create(&path, "text").expect_err("no such directory");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!error.to_string().contains(PREFIX), "{error}");
    }

    #[test]
    fn creating_does_not_overwrite() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("config.toml");
        create(&path, "first").expect("created");
        let error = create(&path, "second").expect_err("it exists");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).expect("the first file"), "first");
        assert_eq!(fs::read_dir(&directory).expect("entries").count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn files_are_readable_by_whom_the_umask_allows() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a directory");
        let ours = directory.path().join("ours");
        let plain = directory.path().join("plain");
        replace(&ours, |out| out.write_all(b"text")).expect("written");
        fs::write(&plain, "text").expect("written");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }
}
