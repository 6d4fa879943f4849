import java.net.InetSocketAddress;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.TUGIBasedProcessor;
import org.apache.hadoop.hive.metastore.api.ThriftHiveMetastore.Iface;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.hadoop.hive.thrift.TUGIContainingTransport;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;

/**
 * A Hive metastore for tests, from the jars in PySpark: its own handlers and Thrift server, on loopback, with its tables in
 * an in-memory Derby database. It prints its port. Its settings are JVM properties.
 */
public class HiveMetastoreServer {
  public static void main(String[] arguments) throws Exception {
    HiveConf settings = new HiveConf(HiveMetastoreServer.class);
    // The tables of locks, which are not created automatically like the others.
    TxnDbUtil.prepDb(settings);
    Iface handlers = HiveMetaStore.newRetryingHMSHandler("metastore", settings, false);
    TServerSocket socket = new TServerSocket(new InetSocketAddress("127.0.0.1", 0));
    System.out.println("listening on port " + socket.getServerSocket().getLocalPort());
    TThreadPoolServer.Args how =
        new TThreadPoolServer.Args(socket)
            .transportFactory(new TUGIContainingTransport.Factory())
            .processor(new TUGIBasedProcessor<>(handlers));
    new TThreadPoolServer(how).serve();
  }
}
