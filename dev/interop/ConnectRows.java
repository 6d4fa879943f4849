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
 * The newest row of each key, as sinks of Kafka Connect get it from its JSON converter. Arguments: the columns. Standard
 * input: key and value of the records in base64, with a tab between them; a dash is no value. Output: as FlinkRows.
 */
public class ConnectRows {
    public static void main(String[] columns) throws Exception {
        JsonConverter keys = new JsonConverter();
        JsonConverter values = new JsonConverter();
        keys.configure(Map.of("schemas.enable", "true"), true);
        values.configure(Map.of("schemas.enable", "true"), false);
        Map<String, Struct> rows = new LinkedHashMap<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t");
            String key = keys.toConnectData("topic", decoded(parts[0])).value().toString();
            SchemaAndValue value = values.toConnectData("topic", decoded(parts[1]));
            if (value.value() == null) {
                rows.remove(key);
            } else {
                rows.put(key, (Struct) value.value());
            }
        }
        for (Struct row : rows.values()) {
            StringBuilder line = new StringBuilder("row");
            for (String column : columns) {
                line.append('\t').append(cell(row.schema().field(column) == null ? null : row.get(column)));
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
