package cdc.sink;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The log of Delta tables on S3: of several processes that commit one version, one does. Delta's own log store for S3
 * knows only the writers of its own process. deltalake commits by the same condition.
 *
 * <p>Two commits never have the same content: Delta puts the id of its transaction into each.
 */
public class ConditionalLogStore extends HadoopFileSystemLogStore {

  public ConditionalLogStore(Configuration configuration) {
    super(configuration);
  }

  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration)
      throws IOException {
    FileSystem files = path.getFileSystem(configuration);
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    while (actions.hasNext()) {
      content.write((actions.next() + "\n").getBytes(StandardCharsets.UTF_8));
    }
    if (overwrite) {
      ObjectWriter.replace(files, path, content.toByteArray());
      return;
    }
    try {
      ObjectWriter.create(files, path, content.toByteArray());
    } catch (org.apache.hadoop.fs.FileAlreadyExistsException other) {
      throw (FileAlreadyExistsException) new FileAlreadyExistsException(path.toString()).initCause(other);
    }
  }

  @Override
  public Boolean isPartialWriteVisible(Path path, Configuration configuration) {
    return false;
  }
}
