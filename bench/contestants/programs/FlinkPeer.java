import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/** FlinkPeer FILE PARALLELISM: runs the statements of a file, parted by lines of ";", in a local mini cluster. */
public class FlinkPeer {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("execution.target", "local");
        settings.setString("parallelism.default", arguments[1]);
        settings.setString("taskmanager.numberOfTaskSlots", arguments[1]);
        settings.setString("pipeline.object-reuse", "true");
        settings.setString("execution.checkpointing.interval", "10 s");
        settings.setString("rest.bind-address", "127.0.0.1");
        settings.setString("rest.bind-port", "0");
        settings.setString("io.tmp.dirs", System.getProperty("java.io.tmpdir"));
        EnvironmentSettings streaming =
                EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build();
        TableEnvironment tables = TableEnvironment.create(streaming);
        for (String statement : Files.readString(Path.of(arguments[0])).split("\n;\n")) {
            if (statement.startsWith("INSERT")) {
                tables.executeSql(statement).await();
            } else {
                tables.executeSql(statement);
            }
        }
    }
}
