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
 * A Hive metastore of the jars that PySpark brings, for tests: its own handlers and its server of Thrift, on loopback, with
 * its tables in the memory of a Derby. It says on which port it listens. Its settings are properties of the JVM.
 */
public class HiveMetastoreServer {
  public static void main(String[] arguments) throws Exception {
    HiveConf settings = new HiveConf(HiveMetastoreServer.class);
    // The tables of locks, which nobody makes by himself, as the others are.
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
