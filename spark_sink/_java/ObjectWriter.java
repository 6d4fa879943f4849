package cdc.sink;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Writes whole objects of an S3 store; the store itself decides who of several writers makes an object. */
final class ObjectWriter {

  // With this, S3A asks the store to reject the write if the object exists (If-None-Match: *).
  private static final String UNLESS_THERE = "fs.option.create.conditional.overwrite";

  // A store can reject a write because of another one that is not finished, so that the object is not readable yet.
  private static final int ATTEMPTS = 5;

  private ObjectWriter() {}

  /**
   * Makes an object with this content.
   *
   * @throws FileAlreadyExistsException there is one with other content.
   */
  static void create(FileSystem files, Path path, byte[] content) throws IOException {
    for (int attempt = 1; ; attempt++) {
      FSDataOutputStreamBuilder<?, ?> made = builder(files, path);
      made.must(UNLESS_THERE, true);
      try {
        write(made, content);
        return;
      } catch (IOException failed) {
        // The store may have created the object although its answer was lost: a retry is then rejected because of the
        // first attempt. So read the existing object to find out who created it.
        byte[] found = foundAfter(failed, files, path);
        if (Arrays.equals(found, content)) {
          return;
        }
        if (found != null) {
          FileAlreadyExistsException other = new FileAlreadyExistsException(path.toString());
          other.initCause(failed);
          throw other;
        }
        if (attempt == ATTEMPTS) {
          throw failed;
        }
      }
    }
  }

  /** Makes an object with this content, whatever is there. */
  static void replace(FileSystem files, Path path, byte[] content) throws IOException {
    write(builder(files, path), content);
  }

  // Overwrite, because S3A would otherwise first check whether the object exists.
  private static FSDataOutputStreamBuilder<?, ?> builder(FileSystem files, Path path) throws IOException {
    FSDataOutputStreamBuilder<?, ?> made = files.createFile(path);
    return made.overwrite(true).recursive();
  }

  // The object is created when the stream is closed. A stream that failed before is not closed.
  private static void write(FSDataOutputStreamBuilder<?, ?> made, byte[] content) throws IOException {
    FSDataOutputStream out = made.build();
    out.write(content);
    out.close();
  }

  // Returns the content of the object, or null if there is none.
  private static byte[] foundAfter(IOException failed, FileSystem files, Path path) throws IOException {
    try (FSDataInputStream in = files.open(path)) {
      return in.readAllBytes();
    } catch (FileNotFoundException absent) {
      return null;
    } catch (IOException unknown) {
      failed.addSuppressed(unknown);
      throw failed;
    }
  }
}
