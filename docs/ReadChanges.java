import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Base64;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.message.BinaryMessageDecoder;

/**
 * Keeps the rows of all tables by the rules of envelope/applying.md, and prints them as JSON at the end, one per line.
 *
 * Argument: envelope.avsc. Standard input: the record values of one canonical partition as base64, one per line, in
 * order. It requires scopes that keep the order of a row, as all scopes do except those of `order: native`. It compares
 * keys by their text.
 */
public class ReadChanges {
    /** Numbers keep every digit that was sent. */
    private static final ObjectMapper JSON = new ObjectMapper()
        .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
        .setNodeFactory(JsonNodeFactory.withExactBigDecimals(true));
    private static final String[] IMAGES = {"key", "key_old", "before", "after"};

    private final Schema schema;
    private final BinaryMessageDecoder<GenericRecord> decoder;
    private final GenericDatumReader<GenericRecord> reader;
    /** Rows by table and key. */
    private final Map<String, Map<String, ObjectNode>> tables = new LinkedHashMap<String, Map<String, ObjectNode>>();
    /** By table and key: the row that had the key before the current one, and the transaction of the change. */
    private final Map<String, Aside> asides = new HashMap<String, Aside>();
    /** By table and key of a deleted row: the scope and the commit time of the delete. */
    private final Map<String, String[]> deletes = new HashMap<String, String[]>();
    /** The greatest position by table, key and scope; without a key, the position of the last truncate. */
    private final Map<String, String> positions = new HashMap<String, String>();

    ReadChanges(Schema schema) {
        this.schema = schema;
        this.decoder = new BinaryMessageDecoder<GenericRecord>(new GenericData(), schema);
        this.reader = new GenericDatumReader<GenericRecord>(schema);
    }

    /** Decodes an event by the first byte of the value; its images become objects. */
    ObjectNode decode(byte[] value) throws Exception {
        if (value.length > 0 && value[0] == '{') {
            return (ObjectNode) JSON.readTree(value);
        }
        GenericRecord record;
        if (value.length > 5 && value[0] == 0) {
            // Any id will do: a datum of version 1 begins with the fields of this schema.
            record = (GenericRecord) reader.read(
                null, DecoderFactory.get().binaryDecoder(value, 5, value.length - 5, null));
        } else {
            record = (GenericRecord) decoder.decode(value);
        }
        ObjectNode event = (ObjectNode) JSON.readTree(record.toString());
        for (int i = 0; i < IMAGES.length; i++) {
            JsonNode text = event.get(IMAGES[i]);
            if (!text.isNull()) {
                event.set(IMAGES[i], JSON.readTree(text.textValue()));
            }
        }
        return event;
    }

    void apply(ObjectNode event) {
        if (event.get("v").intValue() != 1) {
            throw new IllegalStateException("another version of the envelope: " + event.get("id"));
        }
        if (!"row".equals(event.get("kind").textValue())) {
            return;
        }
        String table = JSON.createArrayNode().add(event.get("source")).add(event.get("db")).add(event.get("schema"))
            .add(event.get("table")).toString();
        Map<String, ObjectNode> rows = (Map<String, ObjectNode>) tables.get(table);
        if (rows == null) {
            rows = new LinkedHashMap<String, ObjectNode>();
            tables.put(table, rows);
        }
        String op = event.get("op").textValue();
        if ("t".equals(op)) {
            if (isNew(table, "", event)) {
                rows.clear();
            }
        } else if ("d".equals(op)) {
            if (isKeyed(event) && isNew(table, event.get("key").toString(), event)) {
                leave(table, rows, event.get("key").toString(), event);
            }
        } else if ("r".equals(op) || "c".equals(op) || "u".equals(op)) {
            write(table, rows, op, event);
        } else {
            throw new IllegalStateException("an operation of a later release: " + event.get("id"));
        }
    }

    private void write(String table, Map<String, ObjectNode> rows, String op, ObjectNode event) {
        String key = event.get("key").toString();
        ObjectNode there = (ObjectNode) rows.get(key);
        ObjectNode old = there;
        boolean moves = !event.get("key_old").isNull() && !event.get("key_old").toString().equals(key);
        if (moves) {
            String left = event.get("key_old").toString();
            old = isNew(table, left, event) ? leave(table, rows, left, event) : null;
        }
        if (!isKeyed(event) || outlives(table, rows, key, event) || !isNew(table, key, event)) {
            return;
        }
        asides.remove(table + key);
        deletes.remove(table + key);
        boolean isInsert = "c".equals(op) && !(event.get("tx").isNull() && event.get("ts_commit_us").isNull());
        boolean whole = !"u".equals(op) || "full".equals(event.get("after_state").textValue());
        ObjectNode row = whole || old == null ? JSON.createObjectNode() : old.deepCopy();
        row.setAll((ObjectNode) event.get("key"));
        row.setAll((ObjectNode) event.get("after"));
        rows.put(key, row);
        // A row with exactly the same values is the same row: its insert was sent twice.
        if (there != null && (moves || (isInsert && !there.equals(row)))) {
            asides.put(table + key, new Aside(there, event));
        }
    }

    /**
     * Removes the row that leaves its key: if two rows had the key in one transaction, the older one. If the source
     * does not report the transaction, the row stays; a real consumer marks it as incomplete.
     */
    private ObjectNode leave(String table, Map<String, ObjectNode> rows, String key, ObjectNode event) {
        Aside aside = (Aside) asides.remove(table + key);
        if (aside != null && aside.isOf(event)) {
            return aside.isSure() ? aside.row : null;
        }
        deletes.put(table + key, new String[] {event.get("pos_scope").textValue(), event.get("ts_commit_us").asText()});
        return (ObjectNode) rows.remove(key);
    }

    /** Tells whether another scope deleted the row after the source committed this event. */
    private boolean outlives(String table, Map<String, ObjectNode> rows, String key, ObjectNode event) {
        String[] delete = (String[]) deletes.get(table + key);
        JsonNode committed = event.get("ts_commit_us");
        return delete != null && !delete[0].equals(event.get("pos_scope").textValue()) && !committed.isNull()
            && !"null".equals(delete[1]) && committed.longValue() < Long.parseLong(delete[1]);
    }

    /** A row with NULL in its key has no key, and is not stored. */
    private static boolean isKeyed(ObjectNode event) {
        if (!event.get("key").isNull()) {
            return true;
        }
        if (!event.get("notes").toString().contains("\"KEY_INCOMPLETE\"")) {
            throw new IllegalStateException("no key is known: " + event.get("id"));
        }
        return false;
    }

    /** Tells whether the event is later than everything that its row and table have seen in its scope. */
    private boolean isNew(String table, String key, ObjectNode event) {
        String scope = "\n" + event.get("pos_scope").textValue();
        String place = table + "\n" + key + scope;
        String pos = event.get("pos").textValue();
        String seen = (String) positions.get(place);
        String floor = (String) positions.get(table + "\n" + scope);
        if (seen != null && pos.compareTo(seen) <= 0 || floor != null && pos.compareTo(floor) <= 0) {
            return false;
        }
        positions.put(place, pos);
        return true;
    }

    /** A row whose key was taken by another row: see envelope/keys-that-move.md. */
    private static final class Aside {
        private final ObjectNode row;
        private final JsonNode scope;
        private final JsonNode tx;
        private final JsonNode committed;

        Aside(ObjectNode row, ObjectNode event) {
            this.row = row;
            this.scope = event.get("pos_scope");
            this.tx = id(event);
            this.committed = event.get("ts_commit_us");
        }

        /** Tells whether the event can belong to the transaction that took the key. */
        boolean isOf(ObjectNode event) {
            return scope.equals(event.get("pos_scope")) && tx.equals(id(event))
                && (isSure() || committed.equals(event.get("ts_commit_us")));
        }

        boolean isSure() {
            return !tx.isNull();
        }

        private static JsonNode id(ObjectNode event) {
            return event.get("tx").isNull() ? event.get("tx") : event.get("tx").get("id");
        }
    }

    void print(PrintStream out) {
        for (Iterator<String> names = tables.keySet().iterator(); names.hasNext();) {
            String table = (String) names.next();
            Map<String, ObjectNode> rows = (Map<String, ObjectNode>) tables.get(table);
            for (Iterator<ObjectNode> all = rows.values().iterator(); all.hasNext();) {
                out.println("{\"table\":" + table + ",\"row\":" + all.next() + "}");
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        ReadChanges reader = new ReadChanges(new Schema.Parser().parse(new File(arguments[0])));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            reader.apply(reader.decode(Base64.getDecoder().decode(line)));
        }
        reader.print(new PrintStream(System.out, true, "UTF-8"));
    }
}
