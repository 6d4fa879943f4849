{{/*
The name of every object: the release's name, plus the chart's unless the release's name contains it. It has at most 52
characters, the limit for a CronJob, whose name is part of the names of its Jobs. The alerts need it at the beginning of
the names of pods.
*/}}
{{- define "spark-sink.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels that select the pods. They cannot change between two versions of a release. */}}
{{- define "spark-sink.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The labels of the pod of `helm test`. They differ, so that selectors for the sink's pod do not match it. */}}
{{- define "spark-sink.testLabels" -}}
app.kubernetes.io/name: {{ printf "%s-test" (default .Chart.Name .Values.nameOverride | trunc 58 | trimSuffix "-") }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "spark-sink.labels" -}}
{{ include "spark-sink.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/part-of: cdc-translator
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "spark-sink.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "spark-sink.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "spark-sink.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/*
The configuration file as JSON, which is YAML with every string in quotes. toYaml does not quote some strings that the
program's YAML reader interprets as something else ("=", "<<", 2022-03-20T00:00:00+08).
*/}}
{{- define "spark-sink.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if eq .Values.mode "executors" -}}
{{- $spark := dict "conf" (include "spark-sink.executorConf" . | fromJson) -}}
{{- $config = mergeOverwrite (dict "spark" $spark) $config -}}
{{- end -}}
{{- toPrettyJson $config -}}
{{- end -}}

{{/* Spark settings for executors in separate pods, as JSON. config.spark.conf overrides them. */}}
{{- define "spark-sink.executorConf" -}}
{{- $conf := dict
  "spark.executor.instances" (toString .Values.executors.instances)
  "spark.executor.cores" (toString .Values.executors.cores)
  "spark.executor.memory" .Values.executors.memory
  "spark.executor.memoryOverhead" .Values.executors.memoryOverhead
  "spark.driver.host" "${POD_IP}"
  "spark.kubernetes.driver.pod.name" "${POD_NAME}"
  "spark.kubernetes.namespace" .Release.Namespace
  "spark.kubernetes.container.image" (include "spark-sink.image" .)
  "spark.kubernetes.container.image.pullPolicy" .Values.image.pullPolicy
  "spark.kubernetes.executor.podNamePrefix" (include "spark-sink.fullname" . | trunc 47 | trimSuffix "-")
  "spark.kubernetes.executor.podTemplateFile" "/etc/cdc/config/executor.yaml"
  "spark.kubernetes.executor.podTemplateContainerName" "spark-kubernetes-executor"
  "spark.kubernetes.authenticate.executor.serviceAccountName" (include "spark-sink.serviceAccountName" .)
-}}
{{- with .Values.image.pullSecrets -}}
{{- $names := list -}}
{{- range . -}}{{- $names = append $names .name -}}{{- end -}}
{{- $_ := set $conf "spark.kubernetes.container.image.pullSecrets" (join "," $names) -}}
{{- end -}}
{{- toJson $conf -}}
{{- end -}}

{{/*
Additions to a pod that Spark creates: credentials in its environment, never in Spark's settings.
Arguments: root, role (driver or executor). Only the driver uses the Kubernetes API.
*/}}
{{- define "spark-sink.sparkPod" -}}
{{- $role := .role -}}
{{- with .root -}}
metadata:
  labels:
    app.kubernetes.io/component: {{ $role }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  automountServiceAccountToken: {{ eq $role "driver" }}
  enableServiceLinks: false
  securityContext:
    {{- include "spark-sink.podSecurity" . | nindent 4 }}
  containers:
    - name: spark-kubernetes-{{ $role }}
      {{- if or .Values.secretEnv .Values.env }}
      env:
        {{- include "spark-sink.env" . | trim | nindent 8 }}
      {{- end }}
      workingDir: /tmp
      securityContext:
        {{- include "spark-sink.containerSecurity" . | nindent 8 }}
      volumeMounts:
        {{- include "spark-sink.mounts" . | nindent 8 }}
  volumes:
    {{- include "spark-sink.volumes" . | nindent 4 }}
  {{- with include "spark-sink.placement" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "spark-sink.podSecurity" -}}
runAsNonRoot: true
{{- with .Values.userId }}
runAsUser: {{ . | int64 }}
runAsGroup: {{ . | int64 }}
# This group owns mounted Secrets and claims, so that the process can read and write them.
fsGroup: {{ . | int64 }}
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "spark-sink.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "spark-sink.env" -}}
{{- range .Values.secretEnv }}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secretName }}
      key: {{ .key }}
{{- end }}
{{- range .Values.env }}
- name: {{ .name }}
  value: {{ .value | quote }}
{{- end }}
{{- end -}}

{{- define "spark-sink.mounts" -}}
- name: config
  mountPath: /etc/cdc/config
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- range .Values.secretMounts }}
- name: {{ printf "secret-%s" .name }}
  mountPath: {{ .mountPath }}
  readOnly: true
{{- end }}
{{- range .Values.claims }}
- name: {{ printf "claim-%s" .name }}
  mountPath: {{ .mountPath }}
{{- end }}
{{- end -}}

{{- define "spark-sink.volumes" -}}
- name: config
  configMap:
    name: {{ include "spark-sink.fullname" . }}
- name: tmp
  emptyDir:
    sizeLimit: {{ .Values.tmpSizeLimit }}
{{- range .Values.secretMounts }}
- name: {{ printf "secret-%s" .name }}
  secret:
    secretName: {{ .secretName }}
    defaultMode: 0440
{{- end }}
{{- range .Values.claims }}
- name: {{ printf "claim-%s" .name }}
  persistentVolumeClaim:
    claimName: {{ .claimName }}
{{- end }}
{{- end -}}

{{- define "spark-sink.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
Whether a path outlives the pod: the URL of an object store, or a folder in a mounted claim. Returns "yes" or nothing.
Arguments: path, claims.
*/}}
{{- define "spark-sink.lasting" -}}
{{- if and (contains "://" .path) (not (hasPrefix "file://" .path)) -}}
yes
{{- else -}}
{{- $folder := printf "%s/" (regexReplaceAll "^file:(//)?" .path "" | clean) -}}
{{- range .claims -}}
{{- if hasPrefix (printf "%s/" .mountPath) $folder -}}
yes
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Reject values that are valid on their own but contradict each other. */}}
{{- define "spark-sink.check" -}}
{{- $config := .Values.config -}}
{{- if not $config.pipeline -}}
{{- fail "config.pipeline is not set. Set it to a name for this sink, and never change it." -}}
{{- end -}}
{{- if not (dig "kafka" "bootstrap_servers" "" $config) -}}
{{- fail "config.kafka.bootstrap_servers is not set. Set it to the brokers as host:port, separated by commas." -}}
{{- end -}}
{{- $master := dig "spark" "master" "" $config | default "" -}}
{{- if and (eq .Values.mode "pod") (not $master) -}}
{{- fail "config.spark.master is not set. The pod does not use spark-submit, so set it to local[N] or the URL of a cluster." -}}
{{- end -}}
{{- if and (eq .Values.mode "pod") (hasPrefix "k8s://" $master) -}}
{{- fail (printf "config.spark.master is %s, and mode is pod. Executors in separate pods need the rights of mode: executors." $master) -}}
{{- end -}}
{{- if and (eq .Values.mode "executors") (not (hasPrefix "k8s://" $master)) -}}
{{- fail (printf "mode is executors, and config.spark.master is %s. Set it to k8s://https://kubernetes.default.svc, or the URL of another API server." $master) -}}
{{- end -}}
{{- if and (eq .Values.mode "operator") (or $master (dig "spark" "memory" "" $config)) -}}
{{- fail "mode is operator, and its SparkApplication defines where Spark runs and its memory. Set config.spark.master and config.spark.memory to null." -}}
{{- end -}}
{{- if and .Values.schedule (eq .Values.mode "operator") -}}
{{- fail "schedule is set, and mode is operator. The operator has schedules of its own (ScheduledSparkApplication)." -}}
{{- end -}}
{{- include "spark-sink.checkSchedule" . -}}
{{- if and .Values.networkPolicy.enabled (ne .Values.mode "pod") -}}
{{- fail (printf "networkPolicy.enabled, and mode is %s. Driver and executors communicate with each other and with Kubernetes on ports that Spark chooses. Write your own policy (extraObjects)." .Values.mode) -}}
{{- end -}}
{{- range $watched := list "podMonitor" "prometheusRule" -}}
{{- if and (index $.Values $watched).enabled (not (include "spark-sink.metricsPort" $)) -}}
{{- fail (printf "%s.enabled, and config.metrics.port is not set, so the sink serves no metrics." $watched) -}}
{{- end -}}
{{- if and (index $.Values $watched).enabled (eq $.Values.mode "operator") -}}
{{- fail (printf "%s.enabled, and mode is operator. The pods belong to the operator, which has its own monitors." $watched) -}}
{{- end -}}
{{- end -}}
{{- if not (has (dig "metrics" "host" "" $config) (list "0.0.0.0" "::")) -}}
{{- fail (printf "config.metrics.host is %q, but the kubelet and Prometheus reach a pod from outside. Leave it at 0.0.0.0 (or :: for IPv6)." (dig "metrics" "host" "" $config | toString)) -}}
{{- end -}}
{{- $claims := .Values.claims -}}
{{- range $setting, $path := dict "config.checkpoint" $config.checkpoint "config.tables.warehouse" (dig "tables" "warehouse" "" $config) -}}
{{- if not $path -}}
{{- fail (printf "%s is not set. Set it to a folder in one of the claims, or the URL of an object store." $setting) -}}
{{- end -}}
{{- if not (include "spark-sink.lasting" (dict "path" $path "claims" $claims)) -}}
{{- fail (printf "%s is %s, a folder of the pod that is lost when the pod ends. Use a folder below the mountPath of one of the claims, or the URL of an object store." $setting $path) -}}
{{- end -}}
{{- end -}}
{{- include "cdc.noPlainSecrets" . -}}
{{- $names := list -}}
{{- range concat (.Values.secretEnv | default list) (.Values.env | default list) -}}
{{- if has .name $names -}}
{{- fail (printf "the variable %s is defined twice in secretEnv and env. Remove one of the definitions." .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- if eq .Values.mode "executors" -}}
{{- $names = concat $names (list "POD_NAME" "POD_IP") -}}
{{- end -}}
{{- range regexFindAll "\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}" (include "spark-sink.config" .) -1 -}}
{{- $name := . | trimPrefix "${" | trimSuffix "}" -}}
{{- if not (has $name $names) -}}
{{- fail (printf "config asks for the variable %s, which neither secretEnv nor env defines. The program would exit at startup." .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Reject a schedule that the API server would reject, and alerts that would fire between two runs. */}}
{{- define "spark-sink.checkSchedule" -}}
{{- $schedule := .Values.schedule -}}
{{- $fields := list
  (list "minute" "[0-5]?[0-9]" "0-59")
  (list "hour" "[01]?[0-9]|2[0-3]" "0-23")
  (list "day of the month" "0?[1-9]|[12][0-9]|3[01]" "1-31")
  (list "month" "0?[1-9]|1[0-2]|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)" "1-12 or JAN-DEC")
  (list "day of the week" "[0-6]|(?i:sun|mon|tue|wed|thu|fri|sat)" "0-6 or SUN-SAT")
-}}
{{- if and $schedule (not (hasPrefix "@" $schedule)) -}}
{{- range $place, $part := splitList " " $schedule -}}
{{- $field := index $fields $place -}}
{{- $one := printf "([*?]|(%[1]s)(-(%[1]s))?)(/[1-9][0-9]?)?" (index $field 1) -}}
{{- if not (regexMatch (printf "^%[1]s(,%[1]s)*$" $one) $part) -}}
{{- fail (printf "schedule is %q, and %q is not a valid %s. Use %s, a range, a list or *, with an optional step such as */5." $schedule $part (index $field 0) (index $field 2)) -}}
{{- end -}}
{{- range regexFindAll "[0-9]+-[0-9]+" $part -1 -}}
{{- $ends := splitList "-" . -}}
{{- if gt (index $ends 0 | atoi) (index $ends 1 | atoi) -}}
{{- fail (printf "schedule is %q, and the range %q ends before it begins. List two ranges instead, separated by a comma." $schedule .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $longest := include "spark-sink.longestPause" . | default "0" | int -}}
{{- if and .Values.prometheusRule.enabled (lt (int .Values.prometheusRule.batchSeconds) (mul 2 $longest | int)) -}}
{{- fail (printf "prometheusRule.batchSeconds is %d, but runs with the schedule %q can be %d seconds apart, so SinkDown would fire between them. Set it to at least %d." (int .Values.prometheusRule.batchSeconds) $schedule $longest (mul 2 $longest)) -}}
{{- end -}}
{{- end -}}

{{/* The longest time between two runs in seconds. Limits to days of the month and to months are ignored. */}}
{{- define "spark-sink.longestPause" -}}
{{- $schedule := .Values.schedule -}}
{{- $macros := dict "@hourly" 3600 "@daily" 86400 "@midnight" 86400 "@weekly" 604800 "@monthly" 2678400 "@yearly" 31622400 "@annually" 31622400 -}}
{{- $parts := splitList " " $schedule -}}
{{- if hasKey $macros $schedule -}}
{{- get $macros $schedule -}}
{{- else if eq 5 (len $parts) -}}
{{- $minutes := include "spark-sink.cronField" (dict "field" (index $parts 0) "count" 60) | fromJsonArray -}}
{{- $hours := include "spark-sink.cronField" (dict "field" (index $parts 1) "count" 24) | fromJsonArray -}}
{{- $week := include "spark-sink.cronField" (dict "field" (index $parts 4) "count" 7) | fromJsonArray -}}
{{- $days := 1 -}}
{{- $day := sub (last $week) 7 -}}
{{- /* If both kinds of days are limited, a day of either kind has runs. */ -}}
{{- if has (index $parts 2) (list "*" "?") -}}
{{- range $week -}}
{{- $days = max $days (sub . $day) -}}
{{- $day = . -}}
{{- end -}}
{{- end -}}
{{- $longest := 0 -}}
{{- $last := sub (add (mul 60 (last $hours)) (last $minutes)) (mul 1440 $days) -}}
{{- range $hour := $hours -}}
{{- range $minute := $minutes -}}
{{- $now := add (mul 60 $hour) $minute -}}
{{- $longest = max $longest (sub $now $last) -}}
{{- $last = $now -}}
{{- end -}}
{{- end -}}
{{- mul 60 $longest -}}
{{- end -}}
{{- end -}}

{{/* The values of a valid field that begins with 0, in order, as a JSON list. Days of the week may have names. */}}
{{- define "spark-sink.cronField" -}}
{{- $field := lower .field -}}
{{- range $number, $name := list "sun" "mon" "tue" "wed" "thu" "fri" "sat" -}}
{{- $field = replace $name (toString $number) $field -}}
{{- end -}}
{{- $values := list -}}
{{- range $value := until .count -}}
{{- range splitList "," $field -}}
{{- $pair := splitList "/" . -}}
{{- $ends := first $pair | replace "*" "" | replace "?" "" | splitList "-" -}}
{{- $from := first $ends | atoi -}}
{{- $to := sub $.count 1 -}}
{{- if and (first $ends) (or (gt (len $ends) 1) (eq 1 (len $pair))) -}}
{{- $to = last $ends | atoi -}}
{{- end -}}
{{- $step := index (append $pair "1") 1 | atoi -}}
{{- if and (le $from $value) (le $value (int $to)) (eq 0 (mod (sub $value $from) $step)) -}}
{{- $values = append $values $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $values | uniq | toJson -}}
{{- end -}}

{{/* The base URL of the runbooks, to which alerts link. */}}
{{- define "spark-sink.runbooks" -}}
{{- if not (regexMatch "^https?://" .Values.prometheusRule.runbooks) -}}
{{- fail (printf "prometheusRule.runbooks is %q, but alerts link to it. Set it to the http(s) URL of your copy of docs/runbooks." .Values.prometheusRule.runbooks) -}}
{{- end -}}
{{- .Values.prometheusRule.runbooks | trimSuffix "/" -}}
{{- end -}}

{{/* The port of metrics, or nothing if metrics are disabled. */}}
{{- define "spark-sink.metricsPort" -}}
{{- with dig "metrics" "port" "" .Values.config -}}{{- . | int -}}{{- end -}}
{{- end -}}

{{/* The ports in the settings, as a JSON list: brokers, token issuer, object store, receivers of metrics and lineage. */}}
{{- define "spark-sink.outgoingPorts" -}}
{{- $ports := list -}}
{{- range splitList "," (dig "kafka" "bootstrap_servers" "" .Values.config) -}}
{{- $port := regexFind "[0-9]+$" (trim .) -}}
{{- if not $port -}}
{{- fail (printf "networkPolicy.enabled: the port of the broker %q is not known here. Add it in config.kafka.bootstrap_servers." .) -}}
{{- end -}}
{{- $ports = append $ports (int $port) -}}
{{- end -}}
{{- $catalog := dig "tables" "iceberg_catalog" (dict) .Values.config -}}
{{- $defaults := dict "http" 80 "https" 443 "postgresql" 5432 "thrift" 9083 -}}
{{- $urls := list
  (dig "storage" "endpoint" "" .Values.config)
  (dig "kafka" "oauth_token_url" "" .Values.config)
  (dig "metrics" "otlp" "endpoint" "" .Values.config)
  (dig "lineage" "to" "" .Values.config | regexFind "^https?://.*")
  (dig "properties" "uri" "" $catalog)
-}}
{{- range concat $urls (dig "uri" "" $catalog | splitList ",") -}}
{{- $url := trimPrefix "jdbc:" . | urlParse -}}
{{- $port := regexFind "[0-9]+$" $url.host | default (get $defaults $url.scheme) -}}
{{- if $port -}}
{{- $ports = append $ports (int $port) -}}
{{- end -}}
{{- end -}}
{{- if and (contains "://" (dig "tables" "warehouse" "" .Values.config)) (not (dig "storage" "endpoint" "" .Values.config)) -}}
{{- $ports = append $ports 443 -}}
{{- end -}}
{{- $ports | uniq | toJson -}}
{{- end -}}

{{/*
A gauge of this release's pods. With a schedule, a run's last value counts until batchSeconds after it.
Arguments: metric, pods (label matchers), root.
*/}}
{{- define "spark-sink.latest" -}}
{{- $series := printf "%s{%s}" .metric .pods -}}
{{- if .root.Values.schedule -}}
last_over_time({{ $series }}[{{ int .root.Values.prometheusRule.batchSeconds }}s])
{{- else -}}
{{ $series }}
{{- end -}}
{{- end -}}

{{/*
A counter grew in the last ten minutes, or is new. Prometheus' increase() does not count the first value of a series, but
the first event in quarantine matters most. With a schedule, each run is a new pod whose counters start at zero, and it
can begin and end between two evaluations of the rules. Arguments: metric, pods (label matchers), by (labels, or empty),
root.
*/}}
{{- define "spark-sink.grew" -}}
{{- $series := printf "%s{%s}" .metric .pods -}}
{{- $sum := empty .by | ternary "sum" (printf "sum by (%s) " .by) -}}
{{- if .root.Values.schedule -}}
{{ $sum }}(max_over_time({{ $series }}[10m])) > 0
{{- else -}}
{{ $sum }}(increase({{ $series }}[10m])) > 0
or {{ $sum }}({{ $series }} unless {{ $series }} offset 10m) > 0
{{- end -}}
{{- end -}}
