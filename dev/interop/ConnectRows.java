import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.json.JsonConverter;

/**
 * Prints the newest row of each key, as Kafka Connect sinks get it from the JSON converter. Standard input, separated by
 * tabs: `table`, a label and the columns, then `record`, key and value of each record in base64, with a dash for a missing
 * value. The output is that of FlinkRows.
 */
public class ConnectRows {
    public static void main(String[] arguments) throws Exception {
        JsonConverter keys = new JsonConverter();
        JsonConverter values = new JsonConverter();
        keys.configure(Map.of("schemas.enable", "true"), true);
        values.configure(Map.of("schemas.enable", "true"), false);
        String[] table = null;
        Map<String, Struct> rows = new LinkedHashMap<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t");
            if (parts[0].equals("table")) {
                print(table, rows);
                table = parts;
                rows.clear();
                continue;
            }
            String key = keys.toConnectData("topic", decoded(parts[1])).value().toString();
            SchemaAndValue value = values.toConnectData("topic", decoded(parts[2]));
            if (value.value() == null) {
                rows.remove(key);
            } else {
                rows.put(key, (Struct) value.value());
            }
        }
        print(table, rows);
    }

    private static void print(String[] table, Map<String, Struct> rows) {
        for (Struct row : rows.values()) {
            StringBuilder line = new StringBuilder("row\t" + table[1]);
            for (int i = 2; i < table.length; i++) {
                line.append('\t').append(cell(row.schema().field(table[i]) == null ? null : row.get(table[i])));
            }
            System.out.println(line);
        }
    }

    private static byte[] decoded(String text) {
        return text.equals("-") ? null : Base64.getDecoder().decode(text);
    }

    private static String cell(Object value) {
        if (value == null) {
            return "-";
        }
        Object plain = value instanceof ByteBuffer ? ((ByteBuffer) value).array() : value;
        String text = plain instanceof byte[] ? Base64.getEncoder().encodeToString((byte[]) plain) : plain.toString();
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
