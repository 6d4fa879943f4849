import java.nio.charset.StandardCharsets;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.CloseableIterator;

/**
 * The rows of a table of Flink SQL when its source has ended. Arguments: the statement that creates it, its name, and how
 * many of its first columns are the key. A row is a line, a cell its text in base64, NULL is a dash.
 */
public class FlinkRows {
    public static void main(String[] arguments) throws Exception {
        TableEnvironment flink =
            TableEnvironment.create(EnvironmentSettings.newInstance().inStreamingMode().build());
        flink.getConfig().set("parallelism.default", "1");
        flink.getConfig().set("table.exec.source.cdc-events-duplicate", "true");
        flink.getConfig().setLocalTimeZone(ZoneId.of("UTC"));
        flink.executeSql(arguments[0]);
        Map<List<Object>, Row> rows = new HashMap<>();
        try (CloseableIterator<Row> changes = flink.executeSql("SELECT * FROM " + arguments[1]).collect()) {
            while (changes.hasNext()) {
                Row change = changes.next();
                List<Object> key = new ArrayList<>();
                for (int i = 0; i < Integer.parseInt(arguments[2]); i++) {
                    key.add(change.getField(i));
                }
                if (change.getKind() == RowKind.DELETE) {
                    rows.remove(key);
                } else if (change.getKind() != RowKind.UPDATE_BEFORE) {
                    rows.put(key, change);
                }
            }
        }
        for (Row row : rows.values()) {
            StringBuilder line = new StringBuilder("row");
            for (int i = 0; i < row.getArity(); i++) {
                line.append('\t').append(cell(row.getField(i)));
            }
            System.out.println(line);
        }
    }

    private static String cell(Object value) {
        if (value == null) {
            return "-";
        }
        String text = value instanceof byte[] ? Base64.getEncoder().encodeToString((byte[]) value) : value.toString();
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
