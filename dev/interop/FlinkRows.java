import java.io.BufferedReader;
import java.io.InputStreamReader;
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
 * Prints the rows of Flink SQL tables after their sources have ended. Standard input has a line for each table, separated by
 * tabs: a label, the name of the table, the number of key columns (the first ones), and the statement that creates it in
 * base64. Each row is a line after its label, with the text of each cell in base64 and a dash for NULL.
 */
public class FlinkRows {
    public static void main(String[] arguments) throws Exception {
        TableEnvironment flink =
            TableEnvironment.create(EnvironmentSettings.newInstance().inStreamingMode().build());
        flink.getConfig().set("parallelism.default", "1");
        flink.getConfig().set("table.exec.source.cdc-events-duplicate", "true");
        flink.getConfig().setLocalTimeZone(ZoneId.of("UTC"));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t");
            flink.executeSql(new String(Base64.getDecoder().decode(parts[3]), StandardCharsets.UTF_8));
            for (Row row : rows(flink, parts[1], Integer.parseInt(parts[2]))) {
                StringBuilder cells = new StringBuilder("row\t" + parts[0]);
                for (int i = 0; i < row.getArity(); i++) {
                    cells.append('\t').append(cell(row.getField(i)));
                }
                System.out.println(cells);
            }
            flink.executeSql("DROP TABLE " + parts[1]);
        }
    }

    private static Iterable<Row> rows(TableEnvironment flink, String table, int keys) throws Exception {
        Map<List<Object>, Row> rows = new HashMap<>();
        try (CloseableIterator<Row> changes = flink.executeSql("SELECT * FROM " + table).collect()) {
            while (changes.hasNext()) {
                Row change = changes.next();
                List<Object> key = new ArrayList<>();
                for (int i = 0; i < keys; i++) {
                    key.add(change.getField(i));
                }
                if (change.getKind() == RowKind.DELETE) {
                    rows.remove(key);
                } else if (change.getKind() != RowKind.UPDATE_BEFORE) {
                    rows.put(key, change);
                }
            }
        }
        return rows.values();
    }

    private static String cell(Object value) {
        if (value == null) {
            return "-";
        }
        String text = value instanceof byte[] ? Base64.getEncoder().encodeToString((byte[]) value) : value.toString();
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
