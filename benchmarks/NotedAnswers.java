import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.logical.RowType;

/**
 * The table connector {@code noted}: a sink that discards rows, but notes for each batch of the {@link Pace} when
 * the last row came that the batch makes final.
 *
 * <p>A row is made final by the batch in which its instant lies, that of a column, or by the one in which an
 * instant lies that is some milliseconds later. Each instance writes a file into a folder, {@code NUMBER.longs},
 * eight bytes for a number, little-endian: for batch after batch the nanoseconds from the start of the clock to
 * the last row, and how many rows came.
 */
public final class NotedAnswers implements DynamicTableSinkFactory {
    private static final ConfigOption<String> PATH =
            ConfigOptions.key("path").stringType().noDefaultValue().withDescription("the folder");
    private static final ConfigOption<String> COLUMN =
            ConfigOptions.key("column").stringType().noDefaultValue().withDescription("a row's instant");
    private static final ConfigOption<Long> LATER =
            ConfigOptions.key("later").longType().defaultValue(0L).withDescription("milliseconds to final");

    @Override
    public String factoryIdentifier() {
        return "noted";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        Set<ConfigOption<?>> options = new HashSet<>(Pace.OPTIONS);
        options.addAll(Set.of(PATH, COLUMN));
        return options;
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of(LATER);
    }

    @Override
    public DynamicTableSink createDynamicTableSink(Context context) {
        FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
        helper.validate();
        RowType columns = (RowType) context.getPhysicalRowDataType().getLogicalType();
        return new Table(
                new Answers(
                        helper.getOptions().get(PATH),
                        columns.getFieldIndex(helper.getOptions().get(COLUMN)),
                        helper.getOptions().get(LATER),
                        Pace.of(helper.getOptions())));
    }

    private record Table(Answers answers) implements DynamicTableSink {
        @Override
        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            return ChangelogMode.insertOnly();
        }

        @Override
        public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
            return SinkV2Provider.of(answers);
        }

        @Override
        public DynamicTableSink copy() {
            return this;
        }

        @Override
        public String asSummaryString() {
            return "noted answers";
        }
    }

    private record Answers(String path, int place, long later, Pace pace) implements Sink<RowData> {
        @Override
        public SinkWriter<RowData> createWriter(WriterInitContext context) {
            return new Notes(this, context.getTaskInfo().getIndexOfThisSubtask());
        }
    }

    private static final class Notes implements SinkWriter<RowData> {
        private final Answers answers;
        private final int instance;
        private long[] last = new long[1024];
        private long[] rows = new long[1024];

        Notes(Answers answers, int instance) {
            this.answers = answers;
            this.instance = instance;
        }

        @Override
        public void write(RowData row, Context context) {
            long instant = row.getTimestamp(answers.place, 3).getMillisecond();
            int batch = answers.pace.batch(instant + answers.later);
            if (batch >= rows.length) {
                last = Arrays.copyOf(last, 2 * batch);
                rows = Arrays.copyOf(rows, 2 * batch);
            }
            last[batch] = Pace.now();
            rows[batch]++;
        }

        @Override
        public void flush(boolean endOfInput) {}

        @Override
        public void close() throws IOException {
            ByteBuffer bytes = ByteBuffer.allocate(rows.length * 16).order(ByteOrder.LITTLE_ENDIAN);
            for (int batch = 0; batch < rows.length; batch++) {
                bytes.putLong(last[batch]).putLong(rows[batch]);
            }
            Files.write(Path.of(answers.path, instance + ".longs"), bytes.array());
        }
    }
}
