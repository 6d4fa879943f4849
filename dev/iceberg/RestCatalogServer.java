import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NamespaceNotEmptyException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NoSuchViewException;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.rest.CatalogHandlers;
import org.apache.iceberg.rest.RESTCatalogProperties;
import org.apache.iceberg.rest.RESTCatalogProperties.SnapshotMode;
import org.apache.iceberg.rest.RESTSerializers;
import org.apache.iceberg.rest.requests.CreateNamespaceRequest;
import org.apache.iceberg.rest.requests.CreateTableRequest;
import org.apache.iceberg.rest.requests.CreateViewRequest;
import org.apache.iceberg.rest.requests.UpdateTableRequest;
import org.apache.iceberg.rest.responses.ConfigResponse;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.apache.iceberg.rest.responses.OAuthTokenResponse;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.JsonAutoDetect;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.PropertyAccessor;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.DeserializationFeature;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.PropertyNamingStrategies;

/**
 * Iceberg's own handlers of the REST protocol behind the JDK's HTTP server, for tests: RestCatalogServer WAREHOUSE. The
 * environment has the token that requests must contain. A client with that token as its secret gets another token at
 * /v1/oauth/tokens, which is valid until it is revoked there. The server prints its port. When it stops, it loses the list
 * of tables, but the tables remain in the warehouse.
 */
public class RestCatalogServer {
  private static final ObjectMapper MAPPER = mapper();
  private static final String TOKEN = System.getenv("CDC_CATALOG_TOKEN");

  public static void main(String[] arguments) throws Exception {
    Configuration hadoop = new Configuration();
    System.getProperties().forEach((name, value) -> {
      if (name.toString().startsWith("fs.")) hadoop.set(name.toString(), value.toString());
    });
    HADOOP_FILES = hadoop;
    WAREHOUSE = arguments[0];
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.createContext("/", RestCatalogServer::serve);
    server.start();
    System.out.println("listening on port " + server.getAddress().getPort());
  }

  private static Configuration HADOOP_FILES;
  private static String WAREHOUSE;
  private static final Map<String, InMemoryCatalog> CATALOGS = new ConcurrentHashMap<>();
  private static final Set<String> ISSUED = ConcurrentHashMap.newKeySet();

  private static InMemoryCatalog catalog(String name) {
    InMemoryCatalog made = new InMemoryCatalog();
    String folder = name.isEmpty() ? WAREHOUSE : WAREHOUSE + "/" + name;
    made.initialize("rest", Map.of("warehouse", folder, "io-impl", Files.class.getName()));
    return made;
  }

  /** Hadoop's file IO with our settings, because an in-memory catalog gets none. */
  public static class Files extends org.apache.iceberg.hadoop.HadoopFileIO {
    public Files() {
      super(HADOOP_FILES);
    }
  }

  private static ObjectMapper mapper() {
    ObjectMapper made = new ObjectMapper();
    made.setVisibility(PropertyAccessor.FIELD, JsonAutoDetect.Visibility.ANY);
    made.configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);
    made.setPropertyNamingStrategy(new PropertyNamingStrategies.KebabCaseStrategy());
    RESTSerializers.registerAll(made);
    return made;
  }

  private static void serve(HttpExchange exchange) throws IOException {
    int code = 200;
    Object answer;
    try {
      if (exchange.getRequestURI().getPath().endsWith("/v1/oauth/tokens")) {
        answer = token(exchange);
        code = answer instanceof OAuthTokenResponse ? 200 : 401;
      } else if (!isKnown(exchange)) {
        code = 401;
        answer = error(401, new SecurityException("no token, or not the right one"));
      } else {
        answer = answer(exchange);
      }
    } catch (NoSuchTableException | NoSuchViewException | NoSuchNamespaceException e) {
      code = 404;
      answer = error(404, e);
    } catch (AlreadyExistsException | CommitFailedException | NamespaceNotEmptyException e) {
      code = 409;
      answer = error(409, e);
    } catch (UnsupportedOperationException e) {
      code = 406;
      answer = error(406, e);
    } catch (Exception e) {
      code = 500;
      e.printStackTrace();
      answer = error(500, e);
    }
    boolean bare = answer == null || exchange.getRequestMethod().equals("HEAD");
    byte[] body = bare ? new byte[0] : MAPPER.writeValueAsBytes(answer);
    exchange.getResponseHeaders().add("Content-Type", "application/json");
    exchange.sendResponseHeaders(code == 200 && bare ? 204 : code, body.length == 0 ? -1 : body.length);
    exchange.getResponseBody().write(body);
    exchange.close();
  }

  private static boolean isKnown(HttpExchange exchange) {
    String told = String.valueOf(exchange.getRequestHeaders().getFirst("Authorization")).replaceFirst("^Bearer ", "");
    return TOKEN == null || TOKEN.equals(told) || ISSUED.contains(told);
  }

  /** Return a token for a client's credentials, or in exchange for a known token. DELETE revokes all of them. */
  private static Object token(HttpExchange exchange) throws IOException {
    if (exchange.getRequestMethod().equals("DELETE")) {
      ISSUED.clear();
      return OAuthTokenResponse.builder().withToken("none").withTokenType("bearer").build();
    }
    String form = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
    if (!isKnown(exchange) && !Arrays.asList(form.split("&")).contains("client_secret=" + TOKEN)) {
      return Map.of("error", "invalid_client");
    }
    String made = UUID.randomUUID().toString();
    ISSUED.add(made);
    return OAuthTokenResponse.builder().withToken(made).withTokenType("bearer").setExpirationInSeconds(3600).build();
  }

  private static ErrorResponse error(int code, Exception e) {
    String said = String.valueOf(e.getMessage());
    return ErrorResponse.builder().responseCode(code).withType(e.getClass().getSimpleName()).withMessage(said).build();
  }

  private static <T> T body(HttpExchange exchange, Class<T> type) throws IOException {
    return MAPPER.readValue(exchange.getRequestBody().readAllBytes(), type);
  }

  private static Namespace namespace(String part) {
    return Namespace.of(URLDecoder.decode(part, StandardCharsets.UTF_8).split("\u001f"));
  }

  /**
   * Paths are /v1/config, /v1/namespaces/NAMESPACE/tables/TABLE and /v1/namespaces/NAMESPACE/views/VIEW. Those of metrics
   * get an empty response. The prefix of a path is the name of a catalog, which is created at its first use.
   */
  private static Object answer(HttpExchange exchange) throws IOException {
    String[] path = exchange.getRequestURI().getRawPath().split("/");
    String name = path[1].equals("v1") ? "" : path[1];
    InMemoryCatalog catalog = CATALOGS.computeIfAbsent(name, RestCatalogServer::catalog);
    path = name.isEmpty() ? path : Arrays.copyOfRange(path, 1, path.length);
    String query = exchange.getRequestURI().getRawQuery();
    String method = exchange.getRequestMethod();
    if (path[2].equals("config")) {
      return ConfigResponse.builder().withDefault(RESTCatalogProperties.VIEW_ENDPOINTS_SUPPORTED, "true").build();
    }
    if (!path[2].equals("namespaces")) {
      throw new UnsupportedOperationException(exchange.getRequestURI().toString());
    }
    if (path.length == 3) {
      if (method.equals("POST")) {
        return CatalogHandlers.createNamespace(catalog, body(exchange, CreateNamespaceRequest.class));
      }
      boolean inside = query != null && query.startsWith("parent=");
      return CatalogHandlers.listNamespaces(catalog, inside ? namespace(query.substring(7)) : Namespace.empty());
    }
    Namespace namespace = namespace(path[3]);
    if (path.length == 4) {
      return ofNamespace(method, catalog, namespace);
    }
    if (path[4].equals("views")) {
      return ofViews(exchange, method, catalog, namespace, path);
    }
    if (!path[4].equals("tables")) {
      throw new UnsupportedOperationException(exchange.getRequestURI().toString());
    }
    if (path.length == 5) {
      if (method.equals("GET")) {
        return CatalogHandlers.listTables(catalog, namespace);
      }
      CreateTableRequest request = body(exchange, CreateTableRequest.class);
      return request.stageCreate()
          ? CatalogHandlers.stageTableCreate(catalog, namespace, request)
          : CatalogHandlers.createTable(catalog, namespace, request);
    }
    if (path.length > 6) {
      return null;
    }
    TableIdentifier table = TableIdentifier.of(namespace, URLDecoder.decode(path[5], StandardCharsets.UTF_8));
    return ofTable(exchange, method, query, catalog, table);
  }

  private static Object ofNamespace(String method, InMemoryCatalog catalog, Namespace namespace) {
    switch (method) {
      case "HEAD":
        CatalogHandlers.namespaceExists(catalog, namespace);
        return null;
      case "DELETE":
        CatalogHandlers.dropNamespace(catalog, namespace);
        return null;
      default:
        return CatalogHandlers.loadNamespace(catalog, namespace);
    }
  }

  private static Object ofViews(
      HttpExchange exchange, String method, InMemoryCatalog catalog, Namespace namespace, String[] path)
      throws IOException {
    if (path.length == 5) {
      return method.equals("GET")
          ? CatalogHandlers.listViews(catalog, namespace)
          : CatalogHandlers.createView(catalog, namespace, body(exchange, CreateViewRequest.class));
    }
    TableIdentifier view = TableIdentifier.of(namespace, URLDecoder.decode(path[5], StandardCharsets.UTF_8));
    switch (method) {
      case "GET":
        return CatalogHandlers.loadView(catalog, view);
      case "HEAD":
        CatalogHandlers.viewExists(catalog, view);
        return null;
      case "POST":
        return CatalogHandlers.updateView(catalog, view, body(exchange, UpdateTableRequest.class));
      default:
        CatalogHandlers.dropView(catalog, view);
        return null;
    }
  }

  private static Object ofTable(
      HttpExchange exchange, String method, String query, InMemoryCatalog catalog, TableIdentifier table)
      throws IOException {
    switch (method) {
      case "GET":
        return CatalogHandlers.loadTable(catalog, table, SnapshotMode.ALL);
      case "HEAD":
        CatalogHandlers.tableExists(catalog, table);
        return null;
      case "POST":
        return CatalogHandlers.updateTable(catalog, table, body(exchange, UpdateTableRequest.class));
      default:
        if (query != null && query.contains("purgeRequested=true")) {
          CatalogHandlers.purgeTable(catalog, table);
        } else {
          CatalogHandlers.dropTable(catalog, table);
        }
        return null;
    }
  }
}
