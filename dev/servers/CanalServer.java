import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONWriter;
import com.alibaba.otter.canal.connector.core.producer.MQMessageUtils;
import com.alibaba.otter.canal.connector.core.util.CanalMessageSerializerUtil;
import com.alibaba.otter.canal.instance.core.CanalInstance;
import com.alibaba.otter.canal.instance.manager.CanalInstanceWithManager;
import com.alibaba.otter.canal.instance.manager.model.Canal;
import com.alibaba.otter.canal.instance.manager.model.CanalParameter;
import com.alibaba.otter.canal.parse.inbound.mysql.MysqlEventParser;
import com.alibaba.otter.canal.parse.inbound.mysql.tsdb.DatabaseTableMeta;
import com.alibaba.otter.canal.parse.inbound.mysql.tsdb.TableMetaTSDB;
import com.alibaba.otter.canal.parse.inbound.mysql.tsdb.TableMetaTSDBFactory;
import com.alibaba.otter.canal.parse.inbound.mysql.tsdb.dao.MetaHistoryDAO;
import com.alibaba.otter.canal.parse.inbound.mysql.tsdb.dao.MetaSnapshotDAO;
import com.alibaba.otter.canal.protocol.ClientIdentity;
import com.alibaba.otter.canal.protocol.FlatMessage;
import com.alibaba.otter.canal.protocol.Message;
import com.alibaba.otter.canal.protocol.position.EntryPosition;
import com.alibaba.otter.canal.server.embedded.CanalServerWithEmbedded;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.ibatis.builder.xml.XMLMapperBuilder;
import org.apache.ibatis.mapping.Environment;
import org.apache.ibatis.session.Configuration;
import org.apache.ibatis.session.SqlSessionFactory;
import org.apache.ibatis.session.SqlSessionFactoryBuilder;
import org.apache.ibatis.transaction.jdbc.JdbcTransactionFactory;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.h2.jdbcx.JdbcDataSource;
import org.slf4j.LoggerFactory;

/**
 * Canal's own server, which follows the binary log of one database, and writes flat messages or Protobuf to Kafka, for tests:
 * CanalServer PROPERTIES FOLDER. The properties have Canal's names (canal.mq.topic and so on). Decoding, the messages,
 * dynamic topics and the partition hash are Canal's code. The producer and the configuration are ours, because Canal's
 * Kafka connector and its deployer are not on Maven Central.
 *
 * The folder keeps the position and the structures of the tables. The position is only written when the server stops,
 * so that a killed server repeats everything since its start.
 */
public class CanalServer {
  private static final String DESTINATION = "real";
  private static final int BATCH = 50; // Canal's default, in units of 1 KB
  private static final int NEVER = Integer.MAX_VALUE;

  public static void main(String[] arguments) {
    ((Logger) LoggerFactory.getLogger(Logger.ROOT_LOGGER_NAME)).setLevel(Level.INFO);
    try {
      serve(arguments);
    } catch (Throwable error) {
      error.printStackTrace();
      Runtime.getRuntime().halt(1); // Canal's own threads would keep the process alive
    }
  }

  private static void serve(String[] arguments) throws Exception {
    Properties given = new Properties();
    try (InputStream file = Files.newInputStream(Path.of(arguments[0]))) {
      given.load(file);
    }
    Path folder = Path.of(arguments[1]);
    Canal canal = new Canal();
    canal.setId(1L);
    canal.setName(DESTINATION);
    canal.setCanalParameter(parameters(given, folder));
    CanalServerWithEmbedded server = CanalServerWithEmbedded.instance();
    server.setCanalInstanceGenerator(name -> {
      CanalInstance instance = new CanalInstanceWithManager(canal, ".*\\..*");
      MysqlEventParser parser = (MysqlEventParser) instance.getEventParser();
      String store = "jdbc:h2:" + folder.resolve("structures").toAbsolutePath() + ";MODE=MYSQL";
      parser.setTsdbJdbcUrl(store);
      parser.setTsdbJdbcUserName("");
      parser.setTsdbJdbcPassword("");
      parser.setTableMetaTSDBFactory(new Structures(store));
      parser.setEnableTsdb(true);
      return instance;
    });
    server.start();
    server.start(DESTINATION);
    ClientIdentity client = new ClientIdentity(DESTINATION, (short) 1001, "");
    server.subscribe(client);
    Forwarder forwarder = new Forwarder(server, client, given);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      forwarder.end();
      server.stop();
    }));
    forwarder.run();
  }

  private static CanalParameter parameters(Properties given, Path folder) {
    CanalParameter with = new CanalParameter();
    // The same modes as in Canal's default, file-instance.xml.
    with.setMetaMode(CanalParameter.MetaMode.LOCAL_FILE);
    with.setDataDir(folder.toString());
    with.setMetaFileFlushPeriod(NEVER);
    with.setIndexMode(CanalParameter.IndexMode.MEMORY_META_FAILBACK);
    with.setStorageMode(CanalParameter.StorageMode.MEMORY);
    with.setStorageBatchMode(CanalParameter.BatchMode.MEMSIZE);
    with.setMemoryStorageBufferSize(16 * 1024);
    with.setMemoryStorageBufferMemUnit(1024);
    with.setMemoryStorageRawEntry(true);
    with.setHaMode(CanalParameter.HAMode.HEARTBEAT);
    with.setDetectingEnable(false);
    with.setSourcingType(CanalParameter.SourcingType.MYSQL);
    String[] address = given.getProperty("canal.instance.master.address").split(":");
    with.setDbAddresses(List.of(new InetSocketAddress(address[0], Integer.parseInt(address[1]))));
    with.setDbUsername(given.getProperty("canal.instance.dbUsername"));
    with.setDbPassword(given.getProperty("canal.instance.dbPassword"));
    String journal = given.getProperty("canal.instance.master.journal.name");
    String offset = given.getProperty("canal.instance.master.position");
    with.setPositions(List.of("{\"journalName\":\"" + journal + "\",\"position\":" + offset + "}"));
    with.setSlaveId(Long.parseLong(given.getProperty("canal.instance.mysql.slaveId")));
    with.setDefaultConnectionTimeoutInSeconds(30);
    with.setConnectionCharset("UTF-8");
    with.setConnectionCharsetNumber((byte) 33);
    with.setReceiveBufferSize(16 * 1024);
    with.setSendBufferSize(16 * 1024);
    with.setFilterTableError(false);
    with.setParallel(true);
    with.setTsdbEnable(false); // this would need the deployer's files: see Structures
    return with;
  }

  /** Passes Canal's batches to Kafka in order, and acknowledges each batch when the broker has it. */
  private static class Forwarder {
    private final CanalServerWithEmbedded server;
    private final ClientIdentity client;
    private final String topic;
    private final String dynamicTopic;
    private final String partitionHash;
    private final int partitions;
    private final boolean isFlat;
    private final KafkaProducer<String, byte[]> producer;
    private final ThreadPoolExecutor pool =
        new ThreadPoolExecutor(2, 2, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
    private final Thread thread = Thread.currentThread();
    private volatile boolean ended = false;

    Forwarder(CanalServerWithEmbedded server, ClientIdentity client, Properties given) {
      this.server = server;
      this.client = client;
      topic = given.getProperty("canal.mq.topic");
      dynamicTopic = given.getProperty("canal.mq.dynamicTopic");
      partitionHash = given.getProperty("canal.mq.partitionHash");
      partitions = Integer.parseInt(given.getProperty("canal.mq.partitionsNum"));
      isFlat = Boolean.parseBoolean(given.getProperty("canal.mq.flatMessage", "true"));
      Properties kafka = new Properties();
      kafka.put("bootstrap.servers", given.getProperty("kafka.bootstrap.servers"));
      kafka.put("acks", "all");
      kafka.put("max.in.flight.requests.per.connection", 1);
      producer = new KafkaProducer<>(kafka, new StringSerializer(), new ByteArraySerializer());
    }

    void run() throws Exception {
      while (!ended) {
        Message message = server.getWithoutAck(client, BATCH, 100L, TimeUnit.MILLISECONDS);
        if (message.getId() == -1) continue;
        List<Future<?>> sent = new ArrayList<>();
        for (Map.Entry<String, Message> part : MQMessageUtils.messageTopics(message, topic, dynamicTopic).entrySet()) {
          send(part.getKey(), part.getValue(), sent);
        }
        producer.flush();
        for (Future<?> one : sent) one.get();
        server.ack(client, message.getId());
      }
    }

    private void send(String topic, Message message, List<Future<?>> sent) {
      if (!isFlat) {
        // As in Canal's connector, one record has the whole batch, or one for each partition with rows of the batch.
        Message[] parts = MQMessageUtils.messagePartition(
            MQMessageUtils.buildMessageData(message, pool), message.getId(), partitions, partitionHash, true);
        for (int number = 0; number < parts.length; number++) {
          if (parts[number] == null) continue;
          byte[] value = CanalMessageSerializerUtil.serializer(parts[number], true);
          sent.add(producer.send(new ProducerRecord<>(topic, number, null, value)));
        }
        return;
      }
      MQMessageUtils.EntryRowData[] rows = MQMessageUtils.buildMessageData(message, pool);
      for (FlatMessage whole : MQMessageUtils.messageConverter(rows, message.getId())) {
        FlatMessage[] parts = MQMessageUtils.messagePartition(whole, partitions, partitionHash, true);
        for (int number = 0; number < parts.length; number++) {
          if (parts[number] == null) continue;
          byte[] value = JSON.toJSONBytes(parts[number], JSONWriter.Feature.WriteNulls);
          sent.add(producer.send(new ProducerRecord<>(topic, number, null, value)));
        }
      }
    }

    /** Let the current batch finish. */
    void end() {
      ended = true;
      try {
        thread.join();
      } catch (InterruptedException impossible) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Canal's own store of structures in a file of H2. Its deployer has these statements in files. */
  private static class Structures implements TableMetaTSDBFactory {
    private final String url;

    Structures(String url) {
      this.url = url;
    }

    @Override
    public TableMetaTSDB build(String destination, String unused) {
      try {
        SqlSessionFactory sessions = sessions();
        MetaHistoryDAO history = new MetaHistoryDAO();
        history.setSqlSessionFactory(sessions);
        history.afterPropertiesSet();
        MetaSnapshotDAO snapshot = new MetaSnapshotDAO();
        snapshot.setSqlSessionFactory(sessions);
        snapshot.afterPropertiesSet();
        DatabaseTableMeta store = new DatabaseTableMeta() {
          @Override
          public boolean rollback(EntryPosition position) {
            boolean done = super.rollback(position);
            System.out.println("following");
            return done;
          }
        };
        store.setMetaHistoryDAO(history);
        store.setMetaSnapshotDAO(snapshot);
        store.init(destination);
        return store;
      } catch (Exception error) {
        throw new IllegalStateException(error);
      }
    }

    @Override
    public void destory(String destination) {}

    private SqlSessionFactory sessions() {
      JdbcDataSource source = new JdbcDataSource();
      source.setURL(url);
      Configuration configuration =
          new Configuration(new Environment("structures", new JdbcTransactionFactory(), source));
      configuration.setMapUnderscoreToCamelCase(true);
      parse(configuration, "MetaHistory", HISTORY);
      parse(configuration, "MetaSnapshot", SNAPSHOT);
      return new SqlSessionFactoryBuilder().build(configuration);
    }

    private static void parse(Configuration configuration, String name, String statements) {
      String room = "com.alibaba.otter.canal.parse.inbound.mysql.tsdb.dao." + name;
      String text = """
          <!DOCTYPE mapper PUBLIC "-//mybatis.org//DTD Mapper 3.0//EN" "http://mybatis.org/dtd/mybatis-3-mapper.dtd">
          <mapper namespace="%1$sMapper">%2$s</mapper>""".formatted(room, statements.replace("RESULT", room + "DO"));
      InputStream input = new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
      new XMLMapperBuilder(input, configuration, name, configuration.getSqlFragments()).parse();
    }

    private static final String HISTORY = """
        <insert id="insert">
          INSERT INTO meta_history (gmt_create, gmt_modified, destination, binlog_file, binlog_offest, binlog_master_id,
            binlog_timestamp, use_schema, sql_schema, sql_table, sql_text, sql_type, extra)
          VALUES (now(), now(), #{destination}, #{binlogFile}, #{binlogOffest}, #{binlogMasterId},
            #{binlogTimestamp}, #{useSchema}, #{sqlSchema}, #{sqlTable}, #{sqlText}, #{sqlType}, #{extra})
        </insert>
        <select id="findByTimestamp" resultType="RESULT">
          SELECT * FROM meta_history WHERE destination = #{destination}
            AND binlog_timestamp BETWEEN #{snapshotTimestamp} AND #{timestamp} ORDER BY binlog_timestamp, id
        </select>""";

    private static final String SNAPSHOT = """
        <insert id="insert">
          INSERT INTO meta_snapshot (gmt_create, gmt_modified, destination, binlog_file, binlog_offest,
            binlog_master_id, binlog_timestamp, data, extra)
          VALUES (now(), now(), #{destination}, #{binlogFile}, #{binlogOffest}, #{binlogMasterId},
            #{binlogTimestamp}, #{data}, #{extra})
        </insert>
        <select id="findByTimestamp" resultType="RESULT">
          SELECT * FROM meta_snapshot WHERE destination = #{destination} AND binlog_timestamp &lt; #{timestamp}
            ORDER BY binlog_timestamp DESC, id DESC LIMIT 1
        </select>""";
  }
}
