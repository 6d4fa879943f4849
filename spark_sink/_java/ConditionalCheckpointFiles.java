package cdc.sink;

import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream;

/**
 * The files of a checkpoint on S3: each is there whole or not at all, and of two queries that plan one batch, one does.
 * Spark's own managers rename, which S3A does by copying, or look first and write then.
 */
public class ConditionalCheckpointFiles implements CheckpointFileManager {

  private final Path root;
  private final FileSystem files;

  public ConditionalCheckpointFiles(Path root, Configuration configuration) throws IOException {
    this.root = root;
    this.files = root.getFileSystem(configuration);
  }

  @Override
  public CancellableFSDataOutputStream createAtomic(Path path, boolean overwriteIfPossible) {
    return new WrittenAtClose(files, path, overwriteIfPossible, new ByteArrayOutputStream());
  }

  @Override
  public FSDataInputStream open(Path path) {
    return done(() -> files.open(path));
  }

  @Override
  public FileStatus[] list(Path path, PathFilter filter) {
    return done(() -> files.listStatus(path, filter));
  }

  @Override
  public void mkdirs(Path path) {
    done(() -> files.mkdirs(path));
  }

  @Override
  public boolean exists(Path path) {
    return done(() -> files.exists(path));
  }

  @Override
  public void delete(Path path) {
    done(() -> {
      try {
        return files.delete(path, true);
      } catch (FileNotFoundException gone) {
        return false;
      }
    });
  }

  @Override
  public boolean isLocal() {
    return false;
  }

  @Override
  public Path createCheckpointDirectory() {
    Path qualified = files.makeQualified(root);
    done(() -> files.mkdirs(qualified));
    return qualified;
  }

  /** Keeps what is written until it is closed. */
  private static final class WrittenAtClose extends CancellableFSDataOutputStream {

    private final FileSystem files;
    private final Path path;
    private final boolean overwrite;
    private final ByteArrayOutputStream content;
    private boolean ended;

    WrittenAtClose(FileSystem files, Path path, boolean overwrite, ByteArrayOutputStream content) {
      super(content);
      this.files = files;
      this.path = path;
      this.overwrite = overwrite;
      this.content = content;
    }

    @Override
    public void close() throws IOException {
      if (ended) {
        return;
      }
      ended = true;
      if (overwrite) {
        ObjectWriter.replace(files, path, content.toByteArray());
      } else {
        ObjectWriter.create(files, path, content.toByteArray());
      }
    }

    @Override
    public void cancel() {
      ended = true;
    }
  }

  private interface FileOperation<T> {
    T run() throws IOException;
  }

  // The methods of Spark's trait declare no exceptions, but Spark expects those of the file system.
  private static <T> T done(FileOperation<T> operation) {
    try {
      return operation.run();
    } catch (IOException error) {
      throw ConditionalCheckpointFiles.<RuntimeException>undeclared(error);
    }
  }

  @SuppressWarnings("unchecked")
  private static <E extends Exception> E undeclared(Exception error) throws E {
    throw (E) error;
  }
}
